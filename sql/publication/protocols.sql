-- New rows of the Parquet table protocols: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: protocol_digest
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by protocol_digest order by path, line) = 1
),

published as (
    select protocol_digest
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (protocol_digest)
order by protocol_digest
