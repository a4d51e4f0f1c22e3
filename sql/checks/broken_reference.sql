-- Rows that name another row that is not published.
-- column place: table and column
-- column example: the digest that is named
with named as (
    select 'runs.operation_digest' as place, operation_digest as digest, 'operation' as kind
    from published_runs
    union all
    select 'runs.workload_digest', workload_digest, 'workload' from published_runs
    union all
    select 'runs.implementation_digest', implementation_digest, 'implementation'
    from published_runs
    union all
    select 'runs.protocol_digest', protocol_digest, 'protocol' from published_runs
    union all
    select 'runs.environment_digest', environment_digest, 'environment' from published_runs
    union all
    select 'runs.log_digest', log_digest, 'artifact' from published_runs
    union all
    select 'workloads.operation_digest', operation_digest, 'operation' from published_workloads
    union all
    select 'implementations.operation_digest', operation_digest, 'operation'
    from published_implementations
    union all
    select 'implementations.project_digest', project_digest, 'project'
    from published_implementations
    union all
    select 'implementations.source_digest', source_digest, 'artifact'
    from published_implementations
    union all
    select 'measurements.run_digest', run_digest, 'run' from published_measurements
    union all
    select 'corrections.target_digest', target_digest, target_kind from published_corrections
    union all
    select 'corrections.replacement_digest', replacement_digest, target_kind
    from published_corrections
),

present as (
    select 'operation' as kind, operation_digest as digest from published_operations
    union
    select 'workload', workload_digest from published_workloads
    union
    select 'implementation', implementation_digest from published_implementations
    union
    select 'protocol', protocol_digest from published_protocols
    union
    select 'environment', environment_digest from published_environments
    union
    select 'artifact', artifact_digest from published_artifacts
    union
    select 'project', project_digest from published_projects
    union
    select 'run', run_digest from published_runs
)

select distinct
    named.place,
    named.digest as example
from named
anti join present using (kind, digest)
where named.digest is not null
