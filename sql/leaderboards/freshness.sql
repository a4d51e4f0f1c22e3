-- freshness: one row per dataset and author directory that has a run
-- formula: freshness-v1
-- key: dataset, author
-- column dataset: the dataset
-- column author: author directory
-- column newest_revision: newest revision of the dataset that was read
-- column revision_at: time of that revision (UTC), null where the source has none
-- column read_at: time of the newest publication that read a file of the dataset (UTC)
-- column runs: runs of the author
-- column first_run_at: time of the oldest of them (UTC)
-- column newest_run_at: time of the newest of them (UTC)
-- column newest_run_published_at: time at which the newest publication of a run came (UTC)
-- column formula_version: version of this formula
-- assert in_order: first_run_at <= newest_run_at
with newest_revisions as (
    select
        dataset,
        revision as newest_revision,
        revision_at
    from dataset_revisions
    qualify row_number() over (partition by dataset order by position desc) = 1
),

last_read as (
    select
        dataset,
        max(published_at) as read_at
    from source_files
    group by dataset
),

by_author as (
    select
        dataset,
        author_directory as author,
        count(*) as runs,
        min(observed_at) as first_run_at,
        max(observed_at) as newest_run_at,
        max(published_at) as newest_run_published_at
    from runs
    group by dataset, author_directory
)

select
    by_author.dataset,
    by_author.author,
    newest_revisions.newest_revision,
    newest_revisions.revision_at,
    last_read.read_at,
    by_author.runs,
    by_author.first_run_at,
    by_author.newest_run_at,
    by_author.newest_run_published_at,
    'freshness-v1' as formula_version
from by_author
left join newest_revisions using (dataset)
left join last_read using (dataset)
order by
    by_author.dataset,
    by_author.author
