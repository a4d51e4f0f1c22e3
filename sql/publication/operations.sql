-- Which staged rows of the table operations are new: once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files).
-- key: operation_digest, name, reference_digest
-- column filename: staged file
-- column file_row_number: 0-based row of that file
with staged as (
    select
        operation_digest, name, reference_digest,
        filename,
        file_row_number
    from read_parquet($staged, filename = true, file_row_number = true)
    qualify row_number() over (partition by operation_digest, name, reference_digest order by path, line) = 1
),

published as (
    select operation_digest, name, reference_digest
    from read_parquet($published)
)

select
    filename,
    file_row_number
from staged
anti join published using (operation_digest, name, reference_digest)
order by filename, file_row_number
