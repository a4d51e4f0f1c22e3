-- Which staged rows of the table projects are new: once per key, and in no publication yet.
-- Reads the view published_projects. Parameter: staged (list of Parquet files).
-- key: project_digest
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        project_digest,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by project_digest order by path, line) = 1
),

published as (
    select project_digest
    from published_projects
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published on published.project_digest is not distinct from staged.project_digest
order by staged.file_index, staged.file_row_number
