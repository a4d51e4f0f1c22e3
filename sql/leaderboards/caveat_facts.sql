-- caveat_facts: one row per strict group in which a run passed, with what its runs are compared with
-- formula: caveats-v1
-- key: strict_group
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column old_timer_runs: passed runs of flashinfer-bench from before it changed its timer
-- column new_timer_runs: passed runs of flashinfer-bench from after that
-- column typical_reference_ms: median latency of the reference over the passed runs, in ms; null
--     where the latencies are not that far apart that any could disagree
-- note: From these and from a run itself the view caveats says what holds for the run.
with numbered as (
    select
        strict_groups.group_number,
        runs.source = 'flashinfer-bench' as has_timer_era,
        -- Upstream's timer, by the day it changed.
        runs.observed_at >= timestamp '2026-02-24 00:00:00' as is_new_timer,
        case when runs.reference_latency_ms > 0 then runs.reference_latency_ms end as reference_ms
    from runs
    inner join strict_groups using (strict_group)
    where runs.status = 'passed'
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
    strict_groups.strict_group,
    summed.old_timer_runs,
    summed.new_timer_runs,
    case
        when summed.maximum_reference_ms > 1.5 * summed.minimum_reference_ms
            then summed.median_reference_ms
    end as typical_reference_ms
from summed
inner join strict_groups using (group_number)
