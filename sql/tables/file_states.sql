-- file_states: one row per file of a dataset, in the state of its newest revision
-- key: dataset, path
-- column dataset: dataset that the file belongs to
-- column path: file inside the dataset
-- column kind: definition, solution, workload or trace; null for other files
-- column author_directory: author directory that the file lies in
-- column revision: newest revision that has the file
-- column revision_at: time of that revision (UTC)
-- column file_digest: digest of the file's bytes at that revision
-- column inputs_digest: digest of what the file refers to, as it was read last
-- column parser_version: version of the reading rules by which it was read last
-- column removed: whether a newer revision that was read for the same author lacks the file
-- uncompressed: file_digest
with ordered as (
    select
        files.dataset,
        files.path,
        files.kind,
        files.author_directory,
        files.revision,
        dataset_revisions.revision_at,
        dataset_revisions.position,
        files.file_digest,
        files.inputs_digest,
        files.parser_version,
        files.publication_id
    from published_source_files as files
    inner join dataset_revisions
        on
            dataset_revisions.dataset = files.dataset
            and dataset_revisions.revision = files.revision
),

newest as (
    select *
    from ordered
    qualify row_number() over (
        partition by dataset, path order by position desc, publication_id desc, inputs_digest
    ) = 1
),

-- A file of no author (a definition, say) is listed whatever the filter was.
authors as (
    select distinct dataset, author_directory
    from newest
),

newest_covering as (
    select
        authors.dataset,
        authors.author_directory,
        max(dataset_revisions.position) as position
    from authors
    inner join dataset_revisions
        on
            dataset_revisions.dataset = authors.dataset
            and (
                dataset_revisions.covers_all_authors
                or authors.author_directory is null
                or list_contains(dataset_revisions.authors, authors.author_directory)
            )
    group by authors.dataset, authors.author_directory
)

select
    newest.dataset,
    newest.path,
    newest.kind,
    newest.author_directory,
    newest.revision,
    newest.revision_at,
    newest.file_digest,
    newest.inputs_digest,
    newest.parser_version,
    coalesce(newest_covering.position > newest.position, false) as removed
from newest
left join newest_covering
    on
        newest_covering.dataset = newest.dataset
        and newest_covering.author_directory is not distinct from newest.author_directory
