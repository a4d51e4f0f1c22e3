-- Which staged rows of the table revisions are new: once per key, and in no publication yet.
-- Reads the view published_revisions. Parameter: staged (list of Parquet files).
-- key: dataset, revision, snapshot_id, parser_version
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        dataset, revision, snapshot_id, parser_version,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by dataset, revision, snapshot_id, parser_version order by path, line) = 1
),

published as (
    select dataset, revision, snapshot_id, parser_version
    from published_revisions
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.dataset is not distinct from staged.dataset
        and published.revision is not distinct from staged.revision
        and published.snapshot_id is not distinct from staged.snapshot_id
        and published.parser_version is not distinct from staged.parser_version
order by staged.file_index, staged.file_row_number
