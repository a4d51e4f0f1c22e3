-- trials: one row per published run that was only a trial, and that is therefore in no other table
-- key: run_digest
-- column run_digest: the run
-- column comparison_key: the group that it would be ranked in
-- column implementation_digest: the implementation that was measured
-- column environment_digest: where it was measured
-- column protocol_digest: how it was measured
-- column because: what makes it a trial: NOT_ON_A_GPU, PROTOCOL_NOT_APPROVED
-- note: A run on a CPU, or with other parameters than the protocol's own, is for who made it. None is
--     published any more; earlier versions did, and those runs are kept as they are in Parquet. The
--     view excluded_runs names them.
with marked as (
    select
        run_digest,
        list_intersect(
            unverified_because, ['NOT_ON_A_GPU', 'PROTOCOL_NOT_APPROVED']
        ) as because
    from published_reproductions
)

select
    published_runs.run_digest,
    min(published_runs.comparison_key) as comparison_key,
    min(published_runs.implementation_digest) as implementation_digest,
    min(published_runs.environment_digest) as environment_digest,
    min(published_runs.protocol_digest) as protocol_digest,
    min(list_sort(marked.because)) as because
from published_runs
inner join marked using (run_digest)
where len(marked.because) > 0
group by published_runs.run_digest
