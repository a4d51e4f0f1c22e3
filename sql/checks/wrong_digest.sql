-- Rows whose digest is not that of their content.
-- column place: table
-- column example: the digest as published
with named as (
    select 'projects' as place, project_digest as digest, canonical_json as content
    from published_projects
    union all
    select 'operations', operation_digest, canonical_json from published_operations
    union all
    select 'workloads', workload_digest, canonical_json from published_workloads
    union all
    select 'implementations', implementation_digest, canonical_json
    from published_implementations
    union all
    select 'protocols', protocol_digest, canonical_json from published_protocols
    union all
    select 'environments', environment_digest, canonical_json from published_environments
    union all
    select 'runs', run_digest, canonical_json from published_runs
    union all
    select 'artifacts', artifact_digest, content from published_artifacts
)

select
    place,
    digest as example
from named
where digest is distinct from 'sha256:' || sha256(content)
