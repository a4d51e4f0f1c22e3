-- coverage: one row per operation and GPU, also where nothing was tried
-- formula: coverage-v1
-- key: operation_digest, gpu_product
-- column operation_digest: the operation
-- column operation: name of the operation
-- column family: operation family
-- column gpu_product: device; every one that any run was made on
-- column workloads: workloads of the operation
-- column workloads_tried: of them, those with a run that was measured
-- column workloads_passed: of them, those with an eligible run
-- column workloads_untested: workloads without any measured run
-- column implementations: implementations of the operation
-- column implementations_tried: of them, those with a run that was measured
-- column implementations_passed: of them, those with an eligible run
-- column has_baseline: whether a run of the baseline is eligible
-- column share_tried: workloads tried per workload, 0 to 1; null without workloads
-- column formula_version: version of this formula
-- assert funnel: workloads_passed <= workloads_tried and workloads_tried <= workloads
with devices as (
    select distinct gpu_product
    from strict_groups
    where gpu_product is not null
),

known_workloads as (
    select
        operation_digest,
        count(*) as workloads
    from workloads
    group by operation_digest
),

known_implementations as (
    select
        operation_digest,
        count(*) as implementations
    from implementations
    group by operation_digest
),

tried_groups as (
    select
        group_number,
        bool_or(repeats > 0) as passed,
        bool_or(repeats > 0 and author = 'baseline') as has_baseline
    from author_implementations
    where runs_attempted > 0
    group by group_number
),

results_by_workload as (
    select
        strict_groups.board_number,
        strict_groups.workload_digest,
        bool_or(tried_groups.passed) as passed,
        bool_or(tried_groups.has_baseline) as has_baseline
    from tried_groups
    inner join strict_groups using (group_number)
    -- A run may name a workload that the index is built without.
    semi join workloads
        on
            workloads.workload_digest = strict_groups.workload_digest
            and workloads.operation_digest = strict_groups.operation_digest
    group by strict_groups.board_number, strict_groups.workload_digest
),

tried_workloads as (
    select
        board_number,
        count(*) as workloads_tried,
        count(*) filter (where passed) as workloads_passed,
        bool_or(has_baseline) as has_baseline
    from results_by_workload
    group by board_number
),

results_by_implementation as (
    select
        strict_groups.board_number,
        result_facts.implementation_number,
        bool_or(result_facts.repeats > 0) as passed
    from result_facts
    inner join strict_groups using (group_number)
    where result_facts.runs_attempted > 0
    group by strict_groups.board_number, result_facts.implementation_number
),

tried_implementations as (
    select
        board_number,
        count(*) as implementations_tried,
        count(*) filter (where passed) as implementations_passed
    from results_by_implementation
    group by board_number
),

boards as (
    select distinct
        board_number,
        operation_digest,
        gpu_product
    from strict_groups
),

tried as (
    select *
    from boards
    inner join tried_workloads using (board_number)
    inner join tried_implementations using (board_number)
)

select
    operations.operation_digest,
    operations.name as operation,
    operations.family,
    devices.gpu_product,
    coalesce(known_workloads.workloads, 0) as workloads,
    coalesce(tried.workloads_tried, 0) as workloads_tried,
    coalesce(tried.workloads_passed, 0) as workloads_passed,
    coalesce(known_workloads.workloads, 0) - coalesce(tried.workloads_tried, 0)
        as workloads_untested,
    coalesce(known_implementations.implementations, 0) as implementations,
    coalesce(tried.implementations_tried, 0) as implementations_tried,
    coalesce(tried.implementations_passed, 0) as implementations_passed,
    coalesce(tried.has_baseline, false) as has_baseline,
    coalesce(tried.workloads_tried, 0) / nullif(known_workloads.workloads, 0) as share_tried,
    'coverage-v1' as formula_version
from operations
cross join devices
left join known_workloads using (operation_digest)
left join known_implementations using (operation_digest)
left join tried
    on
        tried.operation_digest = operations.operation_digest
        and tried.gpu_product = devices.gpu_product
order by
    operations.name,
    devices.gpu_product
