-- run_subjects: one row per implementation and file with a run, and the names that it has there
-- key: subject_number
-- column subject_number: number of the combination, from 1
-- column implementation_number: number of the implementation, from 1, in the order of the digests
-- column author_number: number of the author directory, from 1, in the order of the names
-- column implementation_digest: digest of the ImplementationRevision manifest
-- column solution_name: name of the solution
-- column author_directory: author directory that the solution's file lies in
-- column path: file inside the dataset; empty for what comes from no file
-- column published_implementation: digest that the runs were published with, which the shown one
--     stands for
-- column published_author: author directory that the runs were published with
-- uncompressed: implementation_digest, published_implementation
-- note: Many runs share all of this, so that it is kept once and not with each of them; the view
--     runs has both. The numbers are other ones after the next publication; nothing outside the
--     database keeps them.
with names_with_hidden as (
    -- Digests are read only where some are hidden: there are as many as runs.
    select distinct definition_name
    from hidden_runs
    union
    select distinct definition_name
    from published_runs
    semi join trials using (run_digest)
),

combinations as (
    select distinct
        implementation_digest,
        solution_name,
        author_directory,
        path
    from published_runs
    anti join names_with_hidden using (definition_name)

    union

    select distinct
        implementation_digest,
        solution_name,
        author_directory,
        path
    from published_runs
    semi join names_with_hidden using (definition_name)
    anti join hidden_runs using (run_digest, publication_id)
    anti join trials using (run_digest)
),

kept as (
    select
        coalesce(
            identity_aliases.kept_digest, combinations.implementation_digest
        ) as implementation_digest,
        combinations.solution_name,
        combinations.path,
        combinations.implementation_digest as published_implementation,
        combinations.author_directory as published_author
    from combinations
    left join identity_aliases using (implementation_digest)
),

named as (
    select
        kept.*,
        coalesce(author_moves.moved_to, kept.published_author) as author_directory
    from kept
    left join author_moves
        on
            author_moves.implementation_digest = kept.implementation_digest
            and author_moves.solution_name = kept.solution_name
            and author_moves.author_directory = kept.published_author
)

select
    row_number() over (
        order by
            implementation_digest,
            solution_name,
            author_directory,
            path,
            published_implementation,
            published_author
    )::integer as subject_number,
    dense_rank() over (order by implementation_digest)::integer as implementation_number,
    dense_rank() over (order by author_directory)::integer as author_number,
    implementation_digest,
    solution_name,
    author_directory,
    path,
    published_implementation,
    published_author
from named
order by subject_number
