-- strict_groups: one row per strict group: same workload, protocol, environment, inputs, reference
-- formula: ranking-v2
-- key: strict_group
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column group_number: number of the group, from 1; those of an operation follow each other
-- column board_number: number of its operation and device together, from 1
-- column operation_digest: operation of the group
-- column workload_digest: workload of the group
-- column environment_digest: environment of the group
-- column gpu_product: device of the group
-- column comparison_key: group of ranking-v1 that its measured runs are in; null without any
-- column comparison_keys: how many such groups that are; more than one where runs of one protocol
--     state different statistics, which ranking-v2 then compares
-- note: Tables of many million rows are joined, grouped and sorted by the numbers instead of by
--     digests. They are other ones after the next publication; nothing outside the database keeps them.
-- warn one_statistic: comparison_keys <= 1
with tried as (
    select distinct
        strict_group,
        operation_digest,
        workload_digest,
        environment_digest
    from runs
),

measured as (
    select distinct
        strict_group,
        comparison_key
    from runs
    where primary_value is not null
),

first_keys as (
    select
        strict_group,
        comparison_key,
        count(*) over (partition by strict_group) as comparison_keys
    from measured
    qualify row_number() over (partition by strict_group order by comparison_key) = 1
)

select
    tried.strict_group,
    row_number() over (order by tried.operation_digest, tried.strict_group)::integer
        as group_number,
    dense_rank() over (order by tried.operation_digest, environments.gpu_product)::integer
        as board_number,
    tried.operation_digest,
    tried.workload_digest,
    tried.environment_digest,
    environments.gpu_product,
    first_keys.comparison_key,
    coalesce(first_keys.comparison_keys, 0) as comparison_keys
from tried
left join first_keys using (strict_group)
left join environments using (environment_digest)
