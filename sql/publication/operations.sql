-- Which staged rows of the table operations are new: once per key, and in no publication yet.
-- Reads the view published_operations. Parameter: staged (list of Parquet files).
-- key: operation_digest, name, reference_digest
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        operation_digest, name, reference_digest,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by operation_digest, name, reference_digest order by path, line) = 1
),

published as (
    select operation_digest, name, reference_digest
    from published_operations
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.operation_digest is not distinct from staged.operation_digest
        and published.name is not distinct from staged.name
        and published.reference_digest is not distinct from staged.reference_digest
order by staged.file_index, staged.file_row_number
