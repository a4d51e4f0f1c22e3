-- New rows of the Parquet table source_files: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: dataset, revision, path, file_digest, inputs_digest, parser_version
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by dataset, revision, path, file_digest, inputs_digest, parser_version order by path, line) = 1
),

published as (
    select dataset, revision, path, file_digest, inputs_digest, parser_version
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (dataset, revision, path, file_digest, inputs_digest, parser_version)
order by dataset, revision, path
