-- caveat_facts: one row per strict group in which a run passed, with what its runs are compared with
-- formula: caveats-v2
-- key: group_number
-- column group_number: the strict group, see strict_groups
-- column old_timer_runs: passed runs of flashinfer-bench from before it changed its timer
-- column new_timer_runs: passed runs of flashinfer-bench from after that
-- column typical_reference_ms: median latency of the reference over the passed runs, in ms; null
--     where the latencies are not that far apart that any could disagree
-- note: From these and from a run itself the view caveats says what holds for the run.
with numbered as (
    select
        run_conditions.group_number,
        run_origins.source = 'flashinfer-bench' as has_timer_era,
        -- Upstream's timer, by the day it changed.
        run_facts.observed_at >= timestamp '2026-02-24 00:00:00' as is_new_timer,
        case when run_facts.reference_latency_ms > 0 then run_facts.reference_latency_ms end
            as reference_ms
    from run_facts
    inner join run_conditions using (condition_number)
    inner join run_origins using (origin_number)
    where run_origins.status = 'passed'
),

summed as (
    select
        group_number,
        count(*) filter (where has_timer_era and not is_new_timer) as old_timer_runs,
        count(*) filter (where has_timer_era and is_new_timer) as new_timer_runs,
        min(reference_ms) as minimum_reference_ms,
        max(reference_ms) as maximum_reference_ms,
        median(reference_ms) as median_reference_ms
    from numbered
    group by group_number
)

select
    summed.group_number,
    summed.old_timer_runs,
    summed.new_timer_runs,
    case
        when summed.maximum_reference_ms > 1.5 * summed.minimum_reference_ms
            then summed.median_reference_ms
    end as typical_reference_ms
from summed
