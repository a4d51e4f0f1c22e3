-- Rows whose typed columns say something else than their manifest.
-- column place: table and column
-- column example: digest of the row
with compared as (
    select
        'runs.workload_digest' as place,
        run_digest as digest,
        workload_digest as stated,
        try(canonical_json ->> '$.spec.workloadDigest') as actual
    from published_runs
    union all
    select
        'runs.implementation_digest',
        run_digest,
        implementation_digest,
        try(canonical_json ->> '$.spec.implementationDigest')
    from published_runs
    union all
    select
        'runs.environment_digest',
        run_digest,
        environment_digest,
        try(canonical_json ->> '$.spec.environmentDigest')
    from published_runs
    union all
    select
        'runs.protocol_digest',
        run_digest,
        protocol_digest,
        try(canonical_json ->> '$.spec.protocolDigest')
    from published_runs
    union all
    select 'runs.status', run_digest, status, try(canonical_json ->> '$.spec.status')
    from published_runs
    union all
    select
        'runs.primary_value',
        run_digest,
        primary_value::varchar,
        case
            when primary_statistic is not null
                then try(canonical_json -> '$.spec.timing.latencyNs' ->> primary_statistic)
        end
    from published_runs
    union all
    select
        'workloads.operation_digest',
        workload_digest,
        operation_digest,
        try(canonical_json ->> '$.spec.operationSpecDigest')
    from published_workloads
    union all
    select
        'implementations.operation_digest',
        implementation_digest,
        operation_digest,
        try(canonical_json ->> '$.spec.operation.specDigest')
    from published_implementations
)

select
    place,
    digest as example
from compared
where stated is distinct from actual
