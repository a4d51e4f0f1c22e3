-- New rows of the Parquet table workloads: staged, once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files), publication_id, published_at.
-- key: workload_digest, definition_name, external_id, input_fingerprint
with staged as (
    select *
    from read_parquet($staged)
    qualify row_number() over (partition by workload_digest, definition_name, external_id, input_fingerprint order by path, line) = 1
),

published as (
    select workload_digest, definition_name, external_id, input_fingerprint
    from read_parquet($published)
)

select
    staged.*,
    $publication_id::varchar as publication_id,
    $published_at::timestamp as published_at
from staged
anti join published using (workload_digest, definition_name, external_id, input_fingerprint)
order by operation_digest, workload_digest, external_id
