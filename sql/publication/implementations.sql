-- Which staged rows of the table implementations are new: once per key, and in no publication yet.
-- Reads the view published_implementations. Parameter: staged (list of Parquet files).
-- key: implementation_digest, dataset, path
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        implementation_digest, dataset, path,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by implementation_digest, dataset, path order by path, line) = 1
),

published as (
    select implementation_digest, dataset, path
    from published_implementations
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.implementation_digest is not distinct from staged.implementation_digest
        and published.dataset is not distinct from staged.dataset
        and published.path is not distinct from staged.path
order by staged.file_index, staged.file_row_number
