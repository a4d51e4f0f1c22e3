-- dataset_revisions: one row per dataset revision that was read, in the order of the dataset
-- key: dataset, revision
-- column dataset: dataset, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex)
-- column revision_at: time of the revision at its source (UTC), null where the source has none
-- column position: place in the dataset's order, 1 is the oldest; of revisions of one time, or
--     without any, that which was read first
-- column covers_all_authors: whether the revision was read without an author filter
-- column authors: author directories that it was read for, where it was read with a filter
-- note: The order of the dataset, not the order in which revisions were ingested, decides which
--     identity, which file and which quarantined item stands.
-- assert positive_position: position >= 1
with read as (
    select
        dataset,
        revision,
        min(publication_id) as first_publication
    from published_source_files
    group by dataset, revision
),

described as (
    select
        dataset,
        revision,
        min(revision_at) as revision_at,
        bool_or(authors is null or len(authors) = 0) as covers_all_authors,
        list_sort(
            list_distinct(flatten(list(authors order by authors) filter (where authors is not null)))
        ) as authors
    from published_revisions
    group by dataset, revision
)

select
    read.dataset,
    read.revision,
    described.revision_at,
    row_number() over (
        partition by read.dataset
        order by described.revision_at nulls last, read.first_publication, read.revision
    ) as position,
    coalesce(described.covers_all_authors, true) as covers_all_authors,
    described.authors
from read
left join described
    on described.dataset = read.dataset and described.revision = read.revision
