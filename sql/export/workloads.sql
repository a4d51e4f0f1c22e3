-- workloads: one row per WorkloadCase
select
    try_cast(substr(workloads.workload_digest, 8, 32) as uuid)::varchar as "id",
    try_cast(substr(workloads.operation_digest, 8, 32) as uuid)::varchar as "operationId",
    workloads.workload_digest as "workloadDigest",
    'kernelindex.dev/v1alpha1' as "schemaVersion",
    manifests.canonical_json as "manifest",
    manifests.metadata_json as "manifest.metadata",
    workloads.shape_summary as "shapeSummary",
    workloads.dtypes as "dtypes",
    workloads.layout_keys as "layoutKeys",
    strftime(workloads.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt"
from workloads
inner join manifests on manifests.digest = workloads.workload_digest
order by workloads.workload_digest
