-- Which staged rows of the table implementations are new: once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files).
-- key: implementation_digest, dataset, path
-- column filename: staged file
-- column file_row_number: 0-based row of that file
with staged as (
    select
        implementation_digest, dataset, path,
        filename,
        file_row_number
    from read_parquet($staged, filename = true, file_row_number = true)
    qualify row_number() over (partition by implementation_digest, dataset, path order by path, line) = 1
),

published as (
    select implementation_digest, dataset, path
    from read_parquet($published)
)

select
    filename,
    file_row_number
from staged
anti join published using (implementation_digest, dataset, path)
order by filename, file_row_number
