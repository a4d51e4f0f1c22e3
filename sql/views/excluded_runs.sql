-- excluded_runs: one row per run that no ranking shows and reason
-- formula: ranking-v1
-- key: run_digest, reason
-- column run_digest: the run
-- column comparison_key: the group that it would be ranked in
-- column implementation_digest: the implementation that was measured
-- column reason: code, as in run_eligibility
-- column explanation: what the code means
-- note: ranking-v1 and ranking-v2 leave out the same runs.
select
    runs.run_digest,
    runs.comparison_key,
    runs.implementation_digest,
    excluded.reason,
    case
        when excluded.reason = 'RETRACTED'
            then 'a correction withdrew the run or its implementation'
        when excluded.reason = 'SUPERSEDED'
            then 'a correction or a newer revision of the solution took its place'
        when excluded.reason = 'MISSING_PRIMARY_METRIC' then 'the run has no latency'
        else 'the run did not pass: ' || lower(replace(excluded.reason[8:], '_', ' '))
    end as explanation
from (
    select
        run_digest,
        unnest(reasons) as reason
    from run_eligibility
    where not eligible
) as excluded
inner join runs using (run_digest)
