-- implementations: one row per ImplementationRevision
with superseded as (
    select
        replacement_digest,
        min(target_digest) as target_digest
    from corrections
    where action = 'supersede' and target_kind = 'implementation'
    group by replacement_digest
)

select
    try_cast(substr(implementations.implementation_digest, 8, 32) as uuid)::varchar as "id",
    try_cast(substr(implementations.project_digest, 8, 32) as uuid)::varchar as "projectId",
    try_cast(substr(implementations.operation_digest, 8, 32) as uuid)::varchar as "operationId",
    implementations.slug as "slug",
    implementations.implementation_digest as "implementationDigest",
    implementations.source_revision as "sourceRevision",
    implementations.language as "language",
    null as "framework",
    implementations.target_architectures as "targetArchitectures",
    implementations.license_concluded as "licenseExpression",
    implementations.source_available as "sourceAvailable",
    false as "installable",
    implementations.solution_name as "title",
    null as "installKind",
    null as "installCommand",
    implementations.license_declared as "licenseDeclared",
    manifests.canonical_json as "manifest",
    manifests.metadata_json as "manifest.metadata",
    strftime(implementations.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt",
    try_cast(substr(superseded.target_digest, 8, 32) as uuid)::varchar as "supersedesId"
from implementations
inner join manifests on manifests.digest = implementations.implementation_digest
left join superseded on superseded.replacement_digest = implementations.implementation_digest
order by implementations.implementation_digest
