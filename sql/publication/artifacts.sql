-- New rows of the Parquet table artifacts: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: artifact_digest
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by artifact_digest order by path, line) = 1
),

published as (
    select artifact_digest
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (artifact_digest)
order by kind, artifact_digest
