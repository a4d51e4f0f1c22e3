-- caveats: one row per run and caveat
-- formula: caveats-v2
-- key: run_digest, code
-- column run_digest: the run
-- column strict_group: group of the run, by which the caveats of many runs are found at once
-- column group_number: number of that group, see strict_groups
-- column condition_number: number of what the run shares with runs made alike, see run_conditions
-- column code: the caveat, explained in caveat_codes
-- column value: what was found, see caveat_codes; null where there is no number
-- column threshold: what it is compared with; null where there is no number
-- note: A view over runs and what caveat_facts and result_facts say of their groups. Ask it
--     for some group or condition numbers; other conditions make it read every run.
-- note: A caveat changes no rank. It says what to know before a number is used.
with passed as not materialized (
    select
        run_digest,
        workload_digest,
        environment_digest,
        implementation_number,
        strict_group,
        group_number,
        condition_number,
        source,
        primary_value,
        reference_latency_ms,
        max_absolute_error,
        max_relative_error,
        -- Upstream's timer, by the day it changed.
        observed_at >= timestamp '2026-02-24 00:00:00' as is_new_timer
    from runs
    where status = 'passed'
),

mixed_inputs as (
    select
        runs.run_digest,
        runs.strict_group,
        runs.group_number,
        runs.condition_number,
        'MIXED_INPUTS' as code,
        len(workloads.input_fingerprints)::double as value,
        1::double as threshold
    from runs
    inner join workloads using (workload_digest)
    where len(workloads.input_fingerprints) > 1
),

timer_era as (
    select
        passed.run_digest,
        passed.strict_group,
        passed.group_number,
        passed.condition_number,
        'TIMER_ERA' as code,
        case
            when passed.is_new_timer then caveat_facts.old_timer_runs
            else caveat_facts.new_timer_runs
        end::double as value,
        0::double as threshold
    from passed
    inner join caveat_facts using (group_number)
    where
        passed.source = 'flashinfer-bench'
        and caveat_facts.old_timer_runs > 0
        and caveat_facts.new_timer_runs > 0
),

reference_ratios as (
    select
        passed.run_digest,
        passed.strict_group,
        passed.group_number,
        passed.condition_number,
        greatest(
            passed.reference_latency_ms / caveat_facts.typical_reference_ms,
            caveat_facts.typical_reference_ms / passed.reference_latency_ms
        ) as ratio
    from passed
    inner join caveat_facts using (group_number)
    where passed.reference_latency_ms > 0
),

reference_disagrees as (
    select
        run_digest,
        strict_group,
        group_number,
        condition_number,
        'REFERENCE_DISAGREES' as code,
        ratio as value,
        1.5::double as threshold
    from reference_ratios
    where ratio > 1.5
),

repeats as (
    select
        group_number,
        implementation_number,
        maximum_ns / nullif(minimum_ns, 0) as spread
    from result_facts
    where repeats > 1
),

repeated_measurement as (
    select
        passed.run_digest,
        passed.strict_group,
        passed.group_number,
        passed.condition_number,
        'REPEATED_MEASUREMENT' as code,
        repeats.spread as value,
        1::double as threshold
    from passed
    inner join repeats using (group_number, implementation_number)
),

loose_tolerance as (
    select
        run_digest,
        strict_group,
        group_number,
        condition_number,
        'LOOSE_TOLERANCE' as code,
        max_relative_error as value,
        1e-2::double as threshold
    from passed
    where max_relative_error > 1e-2
),

error_not_finite as (
    select
        run_digest,
        strict_group,
        group_number,
        condition_number,
        'ERROR_NOT_FINITE' as code,
        null::double as value,
        null::double as threshold
    from passed
    where not coalesce(isfinite(max_absolute_error) and isfinite(max_relative_error), false)
),

mixed_results as (
    select
        group_number,
        implementation_number,
        runs_attempted - runs_passed as failures
    from result_facts
    where runs_passed > 0 and runs_attempted > runs_passed
),

mixed_outcomes as (
    select
        runs.run_digest,
        runs.strict_group,
        runs.group_number,
        runs.condition_number,
        'MIXED_OUTCOMES' as code,
        mixed_results.failures::double as value,
        0::double as threshold
    from runs
    inner join mixed_results using (group_number, implementation_number)
    where runs.status = 'passed' or not coalesce(runs.not_measured, false)
),

not_measured as (
    select
        run_digest,
        strict_group,
        group_number,
        condition_number,
        'NOT_MEASURED' as code,
        null::double as value,
        null::double as threshold
    from runs
    where not_measured
),

source_of_other_definition as (
    select
        runs.run_digest,
        runs.strict_group,
        runs.group_number,
        runs.condition_number,
        'SOURCE_OF_OTHER_DEFINITION' as code,
        null::double as value,
        null::double as threshold
    from runs
    inner join implementations using (implementation_digest)
    where implementations.operation_digest <> runs.operation_digest
),

memory_floors as (
    select
        workload_sizes.workload_digest,
        environments.environment_digest,
        -- Bytes divided by 10^9 bytes a second are nanoseconds.
        (workload_sizes.moved_bytes - gpu_limits.cache_bytes) / gpu_limits.memory_bandwidth_gb_s
            as floor_ns
    from workload_sizes
    cross join environments
    inner join gpu_limits using (gpu_product)
    where workload_sizes.moved_bytes > gpu_limits.cache_bytes
),

floors as (
    select
        passed.*,
        -- What one load from a GPU's cache takes, see caveat_codes.
        greatest(100, coalesce(memory_floors.floor_ns, 0)) as floor_ns
    from passed
    inner join environments using (environment_digest)
    left join memory_floors using (workload_digest, environment_digest)
    where environments.gpu_product is not null
),

impossible_speed as (
    select
        run_digest,
        strict_group,
        group_number,
        condition_number,
        'IMPOSSIBLE_SPEED' as code,
        primary_value::double as value,
        floor_ns as threshold
    from floors
    where primary_value < floor_ns
),

unknown_architecture as (
    select
        runs.run_digest,
        runs.strict_group,
        runs.group_number,
        runs.condition_number,
        'UNKNOWN_ARCHITECTURE' as code,
        null::double as value,
        null::double as threshold
    from runs
    inner join environments using (environment_digest)
    where coalesce(environments.gpu_architecture, 'unknown') = 'unknown'
),

all_caveats as (
    select * from mixed_inputs
    union all
    select * from timer_era
    union all
    select * from reference_disagrees
    union all
    select * from repeated_measurement
    union all
    select * from loose_tolerance
    union all
    select * from error_not_finite
    union all
    select * from mixed_outcomes
    union all
    select * from not_measured
    union all
    select * from source_of_other_definition
    union all
    select * from impossible_speed
    union all
    select * from unknown_architecture
)

select
    run_digest,
    strict_group,
    group_number,
    condition_number,
    code,
    value,
    threshold
from all_caveats
