-- Under which revision each solution content of a dataset is known: the earliest revision that
-- has it, so that a later revision keeps the identity.
-- Parameters: implementations and revisions (lists of Parquet files), dataset.
-- key: path, content_digest
with dated as (
    select
        dataset,
        revision,
        min(revision_at) as revision_at
    from read_parquet($revisions)
    where dataset = $dataset
    group by dataset, revision
)

select
    implementations.path,
    implementations.content_digest,
    implementations.source_revision,
    dated.revision_at
from read_parquet($implementations) as implementations
left join dated
    on implementations.dataset = dated.dataset
    and implementations.source_revision = dated.revision
where implementations.dataset = $dataset
qualify
    row_number() over (
        partition by implementations.path, implementations.content_digest
        order by dated.revision_at nulls last, implementations.source_revision
    ) = 1
