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
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.workload_digest is not distinct from staged.workload_digest
        and published.definition_name is not distinct from staged.definition_name
        and published.external_id is not distinct from staged.external_id
        and published.input_fingerprint is not distinct from staged.input_fingerprint
order by staged.file_index, staged.file_row_number
