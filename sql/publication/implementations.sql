-- New rows of the Parquet table implementations: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: implementation_digest, dataset, path
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by implementation_digest, dataset, path order by path, line) = 1
),

published as (
    select implementation_digest, dataset, path
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (implementation_digest, dataset, path)
order by operation_digest, implementation_digest, path
