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
-- uncompressed: strict_group, workload_digest, comparison_key
-- note: Tables of many million rows are joined, grouped and sorted by the numbers instead of by
--     digests. They are other ones after the next publication; nothing outside the database keeps them.
-- warn one_statistic: comparison_keys <= 1
with tried as (
    select
        group_number,
        strict_group,
        -- One workload is of one operation; of rows that say otherwise the group takes the first.
        min(operation_digest) as operation_digest,
        workload_digest,
        environment_digest
    from run_conditions
    group by group_number, strict_group, workload_digest, environment_digest
),

measured as (
    select distinct condition_number
    from run_facts
    where primary_value is not null
),

first_keys as (
    select
        run_conditions.group_number,
        arg_min(run_conditions.comparison_key, run_conditions.comparison_number) as comparison_key,
        count(distinct run_conditions.comparison_number) as comparison_keys
    from run_conditions
    semi join measured using (condition_number)
    group by run_conditions.group_number
),

devices as (
    select
        tried.group_number,
        environments.gpu_product
    from tried
    left join environments using (environment_digest)
),

boards as (
    select
        tried.operation_digest,
        devices.gpu_product,
        row_number() over (order by tried.operation_digest, devices.gpu_product)::integer
            as board_number
    from tried
    inner join devices using (group_number)
    group by tried.operation_digest, devices.gpu_product
)

select
    tried.strict_group,
    tried.group_number,
    boards.board_number,
    tried.operation_digest,
    tried.workload_digest,
    tried.environment_digest,
    devices.gpu_product,
    first_keys.comparison_key,
    coalesce(first_keys.comparison_keys, 0) as comparison_keys
from tried
inner join devices using (group_number)
inner join boards
    on
        boards.operation_digest is not distinct from tried.operation_digest
        and boards.gpu_product is not distinct from devices.gpu_product
left join first_keys using (group_number)
