-- run_subjects: one row per implementation and file with a run, and the names that it has there
-- key: subject_number
-- column subject_number: number of the combination, from 1
-- column implementation_number: number of the implementation, from 1, in the order of the digests
-- column author_number: number of the author directory, from 1, in the order of the names
-- column implementation_digest: digest of the ImplementationRevision manifest
-- column solution_name: name of the solution
-- column author_directory: author directory that the file lies in
-- column path: file inside the dataset; empty for what comes from no file
-- uncompressed: implementation_digest
-- note: Many runs share all of this, so that it is kept once and not with each of them; the view
--     runs has both. The numbers are other ones after the next publication; nothing outside the
--     database keeps them.
with combinations as (
    select distinct
        implementation_digest,
        solution_name,
        author_directory,
        path
    from published_runs
    anti join identity_aliases using (implementation_digest)
    anti join trials using (run_digest)
)

select
    row_number() over (
        order by implementation_digest, solution_name, author_directory, path
    )::integer as subject_number,
    dense_rank() over (order by implementation_digest)::integer as implementation_number,
    dense_rank() over (order by author_directory)::integer as author_number,
    implementation_digest,
    solution_name,
    author_directory,
    path
from combinations
order by subject_number
