-- run_conditions: one row per combination of workload, inputs, protocol and environment with a run
-- key: condition_number
-- column condition_number: number of the combination, from 1
-- column group_number: number of the strict group, from 1; those of an operation follow each other
-- column comparison_number: number of the comparison group, from 1, in the order of comparison_key
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column operation_digest: digest of the OperationSpec manifest
-- column workload_digest: digest of the WorkloadCase manifest
-- column protocol_digest: digest of the BenchmarkProtocol manifest
-- column environment_digest: digest of the ExecutionEnvironment manifest
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column definition_name: name of the definition
-- column workload_uuid: identifier of the workload as upstream writes it
-- column input_fingerprint: digest of every input descriptor, tensor files included, which workload identity ignores
-- column reference_digest: digest of the reference source, which operation identity ignores
-- uncompressed: strict_group, workload_digest, comparison_key, workload_uuid, input_fingerprint
-- note: Many runs share all of this, so that it is kept once and not with each of them; the view
--     runs has both. Tables of many million rows are joined, grouped and sorted by the numbers
--     instead of by digests. They are other ones after the next publication; nothing outside the
--     database keeps them.
with names_with_hidden as (
    -- Digests are read only where some are hidden: there are as many as runs.
    select distinct definition_name
    from hidden_runs
    union
    select distinct definition_name
    from published_runs
    semi join trials using (run_digest)
),

combinations as (
    select distinct
        operation_digest,
        workload_digest,
        protocol_digest,
        environment_digest,
        comparison_key,
        definition_name,
        workload_uuid,
        input_fingerprint,
        reference_digest
    from published_runs
    anti join names_with_hidden using (definition_name)

    union

    select distinct
        operation_digest,
        workload_digest,
        protocol_digest,
        environment_digest,
        comparison_key,
        definition_name,
        workload_uuid,
        input_fingerprint,
        reference_digest
    from published_runs
    semi join names_with_hidden using (definition_name)
    anti join hidden_runs using (run_digest, publication_id)
    anti join trials using (run_digest)
),

grouped as materialized (
    select
        *,
        -- Stricter than the comparison key, which ignores tensor files and the reference; and
        -- without the metric, so that a run that failed belongs to the group in which it was tried.
        md5(
            concat_ws(
                ' ',
                workload_digest,
                protocol_digest,
                environment_digest,
                coalesce(input_fingerprint, 'unknown'),
                coalesce(reference_digest, 'unknown')
            )
        ) as strict_group
    from combinations
),

strict_groups as (
    select
        strict_group,
        row_number() over (order by min(operation_digest), strict_group)::integer as group_number
    from grouped
    group by strict_group
),

comparison_groups as (
    select
        comparison_key,
        row_number() over (order by comparison_key)::integer as comparison_number
    from grouped
    group by comparison_key
)

select
    row_number() over (
        order by
            strict_groups.group_number,
            comparison_groups.comparison_number,
            grouped.operation_digest,
            grouped.definition_name,
            grouped.workload_uuid,
            grouped.input_fingerprint,
            grouped.reference_digest
    )::integer as condition_number,
    strict_groups.group_number,
    comparison_groups.comparison_number,
    grouped.strict_group,
    grouped.operation_digest,
    grouped.workload_digest,
    grouped.protocol_digest,
    grouped.environment_digest,
    grouped.comparison_key,
    grouped.definition_name,
    grouped.workload_uuid,
    grouped.input_fingerprint,
    grouped.reference_digest
from grouped
inner join strict_groups using (strict_group)
inner join comparison_groups
    on comparison_groups.comparison_key is not distinct from grouped.comparison_key
