-- identity_aliases: one row per implementation digest that another, earlier one stands for
-- key: implementation_digest
-- column implementation_digest: digest that is not shown
-- column kept_digest: digest of the same solution content at its earliest revision, which is
-- note: The dataset revision is part of an implementation's identity, so that one solution file
--     has another digest at every revision. Of one path with one content the digest of the
--     earliest revision is kept, in whatever order the revisions were ingested.
-- assert another_digest: implementation_digest <> kept_digest
with identities as (
    select
        published_implementations.dataset,
        published_implementations.path,
        published_implementations.content_digest,
        published_implementations.implementation_digest,
        first_value(published_implementations.implementation_digest) over (
            partition by
                published_implementations.dataset,
                published_implementations.path,
                published_implementations.content_digest
            order by
                dataset_revisions.position nulls last,
                published_implementations.source_revision,
                published_implementations.implementation_digest
        ) as kept_digest
    from published_implementations
    left join dataset_revisions
        on
            dataset_revisions.dataset = published_implementations.dataset
            and dataset_revisions.revision = published_implementations.source_revision
)

-- A digest that is the earliest of any path stays: another file needs it.
select
    implementation_digest,
    min(kept_digest) as kept_digest
from identities
group by implementation_digest
having not bool_or(implementation_digest = kept_digest)
