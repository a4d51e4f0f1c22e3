-- New rows of the Parquet table operations: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: operation_digest, name, reference_digest
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by operation_digest, name, reference_digest order by path, line) = 1
),

published as (
    select operation_digest, name, reference_digest
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (operation_digest, name, reference_digest)
order by family, operation_digest, name
