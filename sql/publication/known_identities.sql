-- Under which revision each solution content of a dataset is known: the earliest revision that
-- has it, so that a later revision keeps the identity.
-- Reads the views published_implementations and published_revisions. Parameter: dataset.
-- key: path, content_digest
with dated as (
    select
        dataset,
        revision,
        min(revision_at) as revision_at
    from published_revisions
    where dataset = $dataset
    group by dataset, revision
)

select
    implementations.path,
    implementations.content_digest,
    implementations.source_revision,
    dated.revision_at
from published_implementations as implementations
left join dated
    on implementations.dataset = dated.dataset
    and implementations.source_revision = dated.revision
where implementations.dataset = $dataset
qualify
    row_number() over (
        partition by implementations.path, implementations.content_digest
        order by dated.revision_at nulls last, implementations.source_revision
    ) = 1
