-- Which staged rows of the table source_files are new: once per key, and in no publication yet.
-- Reads the view published_source_files. Parameter: staged (list of Parquet files).
-- key: dataset, revision, path, file_digest, inputs_digest, parser_version
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        dataset, revision, path, file_digest, inputs_digest, parser_version,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by dataset, revision, path, file_digest, inputs_digest, parser_version order by path, line) = 1
),

published as (
    select dataset, revision, path, file_digest, inputs_digest, parser_version
    from published_source_files
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.dataset is not distinct from staged.dataset
        and published.revision is not distinct from staged.revision
        and published.path is not distinct from staged.path
        and published.file_digest is not distinct from staged.file_digest
        and published.inputs_digest is not distinct from staged.inputs_digest
        and published.parser_version is not distinct from staged.parser_version
order by staged.file_index, staged.file_row_number
