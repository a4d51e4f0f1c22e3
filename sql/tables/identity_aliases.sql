-- identity_aliases: one row per implementation digest that another, earlier one stands for
-- key: implementation_digest
-- column implementation_digest: digest that is not shown
-- column kept_digest: digest of the same solution of the same operation at its earliest revision, which is
-- note: The dataset revision is part of an implementation's identity, so that one solution has
--     another digest at every revision. Of one content for one operation the digest of the
--     earliest revision is kept, in whatever order the revisions were ingested and wherever the
--     file lay. A definition that changes in place is another operation, so what implements the
--     old one and what implements the new one never stand for each other.
-- assert another_digest: implementation_digest <> kept_digest
with same_documents as (
    -- Reading rules before 2 had another digest for the same content; equal bytes tell.
    select
        *,
        min(content_digest) over (
            partition by dataset, coalesce(document_digest, content_digest)
        ) as document_content
    from published_implementations
),

contents as (
    select
        *,
        min(document_content) over (partition by dataset, content_digest) as content
    from same_documents
),

identities as (
    select
        contents.implementation_digest,
        first_value(contents.implementation_digest) over (
            partition by contents.dataset, contents.content, contents.operation_digest
            order by
                dataset_revisions.position nulls last,
                contents.source_revision,
                contents.implementation_digest
        ) as kept_digest
    from contents
    left join dataset_revisions
        on
            dataset_revisions.dataset = contents.dataset
            and dataset_revisions.revision = contents.source_revision
)

-- A digest that is the earliest in any dataset stays: another one needs it.
select
    implementation_digest,
    min(kept_digest) as kept_digest
from identities
group by implementation_digest
having not bool_or(implementation_digest = kept_digest)
