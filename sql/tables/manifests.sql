-- manifests: one row per manifest except for runs
-- key: digest
-- column digest: digest of the identity body
-- column kind: kind of manifest, e.g. OperationSpec
-- column canonical_json: identity body in canonical form, which the digest is of
-- column metadata_json: editorial part, in no digest, of the document that was published first
-- uncompressed: digest
-- note: The manifests of runs are many times as large as all else, so they stay in the Parquet
--     files of the publications (runs.parquet, column canonical_json).
with documents as (
    select
        operation_digest as digest,
        'OperationSpec' as kind,
        canonical_json,
        metadata_json,
        publication_id,
        path
    from published_operations

    union all

    select
        workload_digest as digest,
        'WorkloadCase' as kind,
        canonical_json,
        metadata_json,
        publication_id,
        path
    from published_workloads

    union all

    select
        implementation_digest as digest,
        'ImplementationRevision' as kind,
        canonical_json,
        metadata_json,
        publication_id,
        path
    from published_implementations

    union all

    select
        project_digest as digest,
        'SoftwareProject' as kind,
        canonical_json,
        metadata_json,
        publication_id,
        path
    from published_projects

    union all

    select
        protocol_digest as digest,
        'BenchmarkProtocol' as kind,
        canonical_json,
        metadata_json,
        publication_id,
        path
    from published_protocols

    union all

    select
        environment_digest as digest,
        'ExecutionEnvironment' as kind,
        canonical_json,
        metadata_json,
        publication_id,
        path
    from published_environments
)

select
    digest,
    kind,
    canonical_json,
    metadata_json
from documents
qualify row_number() over (partition by digest order by publication_id, path, metadata_json) = 1
