-- New rows of the Parquet table projects: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: project_digest
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by project_digest order by path, line) = 1
),

published as (
    select project_digest
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (project_digest)
order by project_digest
