-- Which staged rows of the table workloads are new: once per key, and in no publication yet.
-- Reads the view published_workloads. Parameter: staged (list of Parquet files).
-- key: workload_digest, definition_name, external_id, input_fingerprint
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        workload_digest, definition_name, external_id, input_fingerprint,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by workload_digest, definition_name, external_id, input_fingerprint order by path, line) = 1
),

published as (
    select workload_digest, definition_name, external_id, input_fingerprint
    from published_workloads
)

select
    file_index,
    file_row_number
from staged
anti join published using (workload_digest, definition_name, external_id, input_fingerprint)
order by file_index, file_row_number
