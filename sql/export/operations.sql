-- operations: one row per OperationSpec
select
    try_cast(substr(operations.operation_digest, 8, 32) as uuid)::varchar as "id",
    operations.slug as "slug",
    operations.family as "family",
    operations.name as "name",
    'kernelindex.dev/v1alpha1' as "schemaVersion",
    operations.operation_digest as "semanticDigest",
    manifests.canonical_json as "manifest",
    manifests.metadata_json as "manifest.metadata",
    operations.tags as "tags",
    strftime(operations.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt",
    null as "supersedesId"
from operations
inner join manifests on manifests.digest = operations.operation_digest
order by operations.name, operations.operation_digest
