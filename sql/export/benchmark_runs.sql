-- benchmark_runs: one row per BenchmarkRun
-- Reads the database and, for the manifests of runs, the view published_runs.
with withdrawn as (
    select
        target_digest,
        min(effective_at) as retracted_at,
        arg_min(reason, effective_at order by correction_id) as retraction_reason
    from corrections
    where action = 'retract' and target_kind = 'run'
    group by target_digest
),

superseded as (
    select
        replacement_digest,
        min(target_digest) as target_digest
    from corrections
    where action = 'supersede' and target_kind = 'run'
    group by replacement_digest
),

-- Named runners with a verified rerun of the same implementation on the same workload.
replications as (
    select
        runs.implementation_digest,
        runs.workload_digest,
        count(distinct reproductions.runner) as runners
    from runs
    inner join reproductions using (run_digest)
    where runs.evidence_level in ('verified', 'replicated')
    group by runs.implementation_digest, runs.workload_digest
)

select
    try_cast(substr(runs.run_digest, 8, 32) as uuid)::varchar as "id",
    runs.run_digest as "runDigest",
    try_cast(substr(runs.implementation_digest, 8, 32) as uuid)::varchar as "implementationId",
    try_cast(substr(runs.workload_digest, 8, 32) as uuid)::varchar as "workloadId",
    md5('source ' || runs.source)::uuid::varchar as "sourceId",
    runs.status as "status",
    strftime(runs.observed_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "observedAt",
    strftime(runs.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "publishedAt",
    environments.hardware_vendor as "hardwareVendor",
    environments.hardware_product as "hardwareModel",
    environments.hardware_architecture as "hardwareArchitecture",
    try_cast(split_part(environments.driver, '.', 1) as integer) as "driverMajor",
    environments.cuda_major as "cudaMajor",
    runs.protocol_digest as "protocolKey",
    runs.environment_digest as "environmentKey",
    runs.correctness_key as "correctnessKey",
    runs.comparison_key as "comparisonKey",
    runs.primary_metric as "primaryMetric",
    runs.primary_value as "primaryValue",
    runs.primary_unit as "primaryUnit",
    runs.sample_count as "sampleCount",
    runs.uncertainty_low_ns as "uncertaintyLow",
    runs.uncertainty_high_ns as "uncertaintyHigh",
    true as "reported",
    runs.evidence_level in ('verified', 'replicated') as "reproducedByKernelindex",
    case
        when runs.evidence_level = 'replicated' then coalesce(replications.runners, 0)
        else 0
    end as "independentReplicationCount",
    coalesce(implementations.source_available, false) as "sourceAvailable",
    false as "installable",
    implementations.license_concluded as "licenseExpression",
    runs.primary_statistic as "primaryStatistic",
    runs.has_raw_evidence as "hasRawEvidence",
    runs.source_native as "sourceNative",
    environments.summary as "environmentSummary",
    published_runs.canonical_json as "manifest.run",
    published_runs.metadata_json as "manifest.run.metadata",
    protocol_manifests.canonical_json as "manifest.protocol",
    protocol_manifests.metadata_json as "manifest.protocol.metadata",
    environment_manifests.canonical_json as "manifest.environment",
    environment_manifests.metadata_json as "manifest.environment.metadata",
    try_cast(substr(superseded.target_digest, 8, 32) as uuid)::varchar as "supersedesId",
    strftime(withdrawn.retracted_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "retractedAt",
    withdrawn.retraction_reason as "retractionReason"
from runs
inner join published_runs
    on
        published_runs.run_digest = runs.run_digest
        and published_runs.publication_id = runs.publication_id
inner join environments on environments.environment_digest = runs.environment_digest
left join implementations on implementations.implementation_digest = runs.implementation_digest
inner join manifests as protocol_manifests on protocol_manifests.digest = runs.protocol_digest
inner join manifests as environment_manifests
    on environment_manifests.digest = runs.environment_digest
left join withdrawn on withdrawn.target_digest = runs.run_digest
left join superseded on superseded.replacement_digest = runs.run_digest
left join replications
    on
        replications.implementation_digest = runs.implementation_digest
        and replications.workload_digest = runs.workload_digest
order by runs.observed_at, runs.run_digest
