-- Which staged rows of the table workloads are new: once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files).
-- key: workload_digest, definition_name, external_id, input_fingerprint
-- column filename: staged file
-- column file_row_number: 0-based row of that file
with staged as (
    select
        workload_digest, definition_name, external_id, input_fingerprint,
        filename,
        file_row_number
    from read_parquet($staged, filename = true, file_row_number = true)
    qualify row_number() over (partition by workload_digest, definition_name, external_id, input_fingerprint order by path, line) = 1
),

published as (
    select workload_digest, definition_name, external_id, input_fingerprint
    from read_parquet($published)
)

select
    filename,
    file_row_number
from staged
anti join published using (workload_digest, definition_name, external_id, input_fingerprint)
order by filename, file_row_number
