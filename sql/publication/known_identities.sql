-- Under which revision each solution content of a dataset is known: the earliest revision that
-- has it, so that a later revision keeps the identity. Of revisions of one time the one that was
-- read before is the earlier.
-- Reads the views published_implementations and published_revisions. Parameters: dataset, and the
-- revision that is about to be read with its time (null where nothing dates it, which comes last).
-- key: content_digest
with dated as (
    select
        revision,
        min(revision_at) as revision_at
    from published_revisions
    where dataset = $dataset
    group by revision
),

known as (
    select
        implementations.content_digest,
        implementations.source_revision,
        dated.revision_at
    from published_implementations as implementations
    left join dated on implementations.source_revision = dated.revision
    where implementations.dataset = $dataset
    qualify
        row_number() over (
            partition by implementations.content_digest
            order by dated.revision_at nulls last, implementations.source_revision
        ) = 1
)

select
    content_digest,
    dense_rank() over (order by revision_at nulls last, source_revision) as position,
    source_revision,
    case
        when source_revision = $revision or $revision_at::timestamp is null then false
        else coalesce(revision_at > $revision_at::timestamp, true)
    end as is_later
from known
