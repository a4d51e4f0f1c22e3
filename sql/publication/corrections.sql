-- New rows of the Parquet table corrections: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: correction_id
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by correction_id order by path, line) = 1
),

published as (
    select correction_id
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (correction_id)
order by correction_id
