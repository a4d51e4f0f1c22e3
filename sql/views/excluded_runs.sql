-- excluded_runs: one row per run that no ranking shows and reason
-- formula: ranking-v1
-- key: run_digest, reason
-- column run_digest: the run
-- column comparison_key: the group that it would be ranked in
-- column implementation_digest: the implementation that was measured
-- column reason: code, as in runs.excluded_because; TRIAL for a trial, which runs does not have
-- column explanation: what the code means
-- note: ranking-v1 and ranking-v2 leave out the same runs.
with excluded as (
    select
        run_digest,
        comparison_key,
        implementation_digest,
        unnest(excluded_because) as reason
    from runs
    where not eligible

    union all

    select
        run_digest,
        comparison_key,
        implementation_digest,
        'TRIAL' as reason
    from trials
)

select
    run_digest,
    comparison_key,
    implementation_digest,
    reason,
    case
        when reason = 'RETRACTED' then 'a correction withdrew the run or its implementation'
        when reason = 'SUPERSEDED'
            then 'a correction or a newer revision of the solution took its place'
        when reason = 'TRIAL'
            then 'the run was made on a CPU, or with other parameters than those of its protocol'
        when reason = 'MISSING_PRIMARY_METRIC' then 'the run has no latency'
        when reason = 'LATENCY_NOT_POSITIVE'
            then 'its latency is 0 ns or less, which nothing can take'
        else 'the run did not pass: ' || lower(replace(reason[8:], '_', ' '))
    end as explanation
from excluded
