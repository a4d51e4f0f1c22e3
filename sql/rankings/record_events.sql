-- record_events: one row per time that a run became the fastest of its comparison group
-- formula: ranking-v1
-- key: comparison_key, run_digest
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column run_digest: the run that took the record
-- column previous_run_digest: the run that held it before; null for the first of a group
-- column primary_value: the new record, in ns
-- column previous_value: the record before it, in ns
-- column at: time at which the run was observed (UTC)
-- column cause: why the event is there: new_run
-- column policy_version: version of the ranking rules
-- assert strictly_faster: previous_value is null or primary_value < previous_value
with eligible as (
    select
        runs.run_digest,
        runs.comparison_key,
        runs.primary_value,
        runs.observed_at
    from runs
    inner join run_eligibility using (run_digest)
    where run_eligibility.eligible
),

-- The best value before each run: only a strictly lower one is a record.
compared as (
    select
        *,
        min(primary_value) over (
            partition by comparison_key
            order by observed_at, run_digest
            rows between unbounded preceding and 1 preceding
        ) as best_before
    from eligible
),

taken as (
    select *
    from compared
    where best_before is null or primary_value < best_before
)

select
    comparison_key,
    run_digest,
    lag(run_digest) over (partition by comparison_key order by observed_at, run_digest)
        as previous_run_digest,
    primary_value,
    best_before as previous_value,
    observed_at as at,
    'new_run' as cause,
    'ranking-v1' as policy_version
from taken
