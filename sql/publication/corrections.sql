-- Which staged rows of the table corrections are new: once per key, and in no publication yet.
-- Reads the view published_corrections. Parameter: staged (list of Parquet files).
-- key: correction_id
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        correction_id,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by correction_id order by path, line) = 1
),

published as (
    select correction_id
    from published_corrections
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published on published.correction_id is not distinct from staged.correction_id
order by staged.file_index, staged.file_row_number
