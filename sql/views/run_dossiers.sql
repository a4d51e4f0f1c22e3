-- run_dossiers: one row per run, with everything that its page shows
-- key: run_digest
-- column run_digest: digest of the BenchmarkRun manifest
-- column title: solution and definition, as a heading
-- column primary_value: primary statistic of the latency, in ns; null without a measurement
-- column primary_unit: unit of the primary value
-- column primary_statistic: statistic of the primary value, e.g. mean
-- column status: outcome: passed, runtime_error, ...
-- column eligible: whether the run is ranked
-- column excluded_because: codes that keep it from being ranked
-- column rank: rank in its comparison group by ranking-v1; null where it is not ranked
-- column group_size: runs ranked in the comparison group
-- column record_run_digest: run that holds the record of the comparison group
-- column record_value: the record of the comparison group, in ns
-- column slowdown_to_record: primary value divided by the record
-- column is_record: whether this run holds the record
-- column implementation_rank: rank of its implementation in its strict group by ranking-v2
-- column implementation_median_ns: median of the implementation's repeats there, in ns
-- column implementation_repeats: how many repeats that are
-- column source_native: whether the group compares what one source measured itself
-- column observed_at: time of the run (UTC)
-- column reported_speedup: speed-up over the reference, as the source reports it; null where the
--     reference was not timed
-- column reference_latency_ms: latency of the reference in the same trace, in milliseconds
-- column evidence_level: reported, reproducible, verified or replicated
-- column has_raw_evidence: whether a log is kept
-- column operation: name of the definition
-- column operation_digest: digest of the OperationSpec manifest
-- column family: operation family
-- column solution: name of the solution
-- column implementation_digest: digest of the ImplementationRevision manifest
-- column author: author directory
-- column role: role as we see it: baseline, human or agent
-- column language: language token
-- column entry_symbol: function that is called
-- column project: name of the project
-- column project_url: where the project lives
-- column source_revision: dataset revision in the identity of the implementation
-- column source_digest: digest of the kept main source, see artifacts
-- column source_file_name: name of the main source file
-- column license_declared: licence expression that the dataset declares
-- column license_concluded: licence expression that was concluded, null for none
-- column workload_digest: digest of the WorkloadCase manifest
-- column workload_label: bound axes as text
-- column workload_axes_json: bound axes as JSON
-- column workload_dtypes: dtypes of the tensors, sorted
-- column workload_manifest_json: identity body of the workload, with every tensor
-- column workload_uuid: identifier of the entry at the source
-- column input_fingerprint: digest of every input descriptor, tensor files included
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column group_number: number of the strict group, see run_conditions
-- column condition_number: number of what the run shares with runs made alike, see run_conditions
-- column protocol_comparator: how the harness compares outputs
-- column workload_comparator: how the workload's definition compares outputs
-- column max_absolute_error: largest absolute error that was found
-- column max_relative_error: largest relative error that was found
-- column evaluation_extra_json: what else the source states of the evaluation, as JSON by name
-- column allowed_absolute_error: largest absolute error that the workload allows, null for unstated
-- column allowed_relative_error: largest relative error that the workload allows, null for unstated
-- column measurements: every named value of the run
-- column protocol_digest: digest of the BenchmarkProtocol manifest
-- column protocol_title: title of the protocol
-- column harness: program that measured
-- column timer: how time was taken
-- column correctness_reference: what outputs are compared with
-- column comparability_family: family of protocols that are comparable
-- column environment_digest: digest of the ExecutionEnvironment manifest
-- column gpu_product: device
-- column gpu_architecture: architecture of the device, corrected
-- column published_architecture: architecture of the device as the manifest states it
-- column cuda_toolkit: CUDA version
-- column driver: driver version
-- column framework: tensor library with its version
-- column libraries_json: other libraries with versions, as JSON
-- column log_digest: digest of the log, see artifacts
-- column log_size_bytes: size of the log in bytes
-- column caveats: what to know before the number is used, sorted by code
-- column corrections: retractions, supersessions and attestations of the run, then of its
--     implementation, each oldest first; attestations never change the evidence level
-- column reproductions: controlled reruns of this run, and of a controlled run the verdict on the
--     run that it reproduces; oldest first
-- column source: where the run was reported
-- column external_id: identifier at the source
-- column dataset: dataset that the run came from
-- column revision: dataset revision (40 hex) at which it was first published
-- column path: file inside the dataset
-- column line: 1-based line of the file
-- column publication_id: publication that brought it; its runs.parquet holds the canonical manifest
-- column published_at: time of that publication (UTC)
-- note: A view over the tables: nothing is stored twice. Ask it for one run by its whole digest, its
--     comparison_key, its group_number and its condition_number: by the numbers hardly any digests
--     have to be read. A condition on other columns reads all rows.
with run_measurements as (
    select
        run_digest,
        list(
            {
                'metric': metric,
                'statistic': statistic,
                'value': value,
                'unit': unit,
                'sample_count': sample_count
            }
            order by metric, statistic
        ) as measurements
    from measurements
    group by run_digest
),

run_caveats as (
    select
        caveats.run_digest,
        caveats.condition_number,
        list(
            {
                'code': caveats.code,
                'explanation': caveat_codes.explanation,
                'value': caveats.value,
                'threshold': caveats.threshold
            }
            order by caveats.code
        ) as caveats
    from caveats
    inner join caveat_codes using (code)
    group by caveats.run_digest, caveats.condition_number
),

corrections_by_target as (
    select
        target_kind,
        target_digest,
        list(
            {
                'action': action,
                'target_kind': target_kind,
                'replacement_digest': replacement_digest,
                'author': author,
                'reason': reason,
                'evidence_url': evidence_url,
                'effective_at': effective_at
            }
            order by effective_at, correction_id
        ) as corrections
    from corrections
    group by target_kind, target_digest
),

-- Each verdict stands with the run that was made and with the one that it is about.
sides as (
    select
        *,
        unnest([run_digest, reproduces_digest]) as side_digest
    from reproductions
),

run_reproductions as (
    select
        side_digest,
        list(
            {
                'run_digest': run_digest,
                'reproduces_digest': reproduces_digest,
                'verdict': verdict,
                'ratio': ratio,
                'ratio_low': ratio_low,
                'ratio_high': ratio_high,
                'controlled_ns': controlled_ns,
                'controlled_gpu': controlled_gpu,
                'reason_codes': reason_codes,
                'unverified_because': unverified_because
            }
            order by published_at, run_digest
        ) as reproductions
    from sides
    where side_digest is not null
    group by side_digest
)

select
    runs.run_digest,
    concat_ws(' · ', runs.solution_name, runs.definition_name) as title,
    runs.primary_value,
    runs.primary_unit,
    runs.primary_statistic,
    runs.status,
    runs.eligible,
    runs.excluded_because,
    ranked_runs.rank,
    ranked_runs.group_size,
    records.run_digest as record_run_digest,
    records.primary_value as record_value,
    runs.primary_value / nullif(records.primary_value, 0) as slowdown_to_record,
    coalesce(records.run_digest = runs.run_digest, false) as is_record,
    ranked_implementations.rank as implementation_rank,
    ranked_implementations.median_ns as implementation_median_ns,
    ranked_implementations.repeats as implementation_repeats,
    runs.source_native,
    runs.observed_at,
    runs.reported_speedup,
    runs.reference_latency_ms,
    runs.evidence_level,
    runs.has_raw_evidence,
    runs.definition_name as operation,
    runs.operation_digest,
    operations.family,
    runs.solution_name as solution,
    runs.implementation_digest,
    runs.author_directory as author,
    implementations.actual_role as role,
    implementations.language,
    implementations.entry_symbol,
    projects.name as project,
    projects.canonical_url as project_url,
    implementations.source_revision,
    implementations.source_digest,
    implementations.source_file_name,
    implementations.license_declared,
    implementations.license_concluded,
    runs.workload_digest,
    workloads.axes_label as workload_label,
    workloads.axes_json as workload_axes_json,
    workloads.dtypes as workload_dtypes,
    workload_manifests.canonical_json as workload_manifest_json,
    runs.workload_uuid,
    runs.input_fingerprint,
    runs.comparison_key,
    runs.strict_group,
    runs.group_number,
    runs.condition_number,
    try(protocol_manifests.canonical_json ->> '$.spec.correctness.comparator') as protocol_comparator,
    try(workload_manifests.canonical_json ->> '$.spec.correctness.comparator') as workload_comparator,
    runs.max_absolute_error,
    runs.max_relative_error,
    runs.evaluation_extra_json,
    workloads.max_absolute_error as allowed_absolute_error,
    workloads.max_relative_error as allowed_relative_error,
    run_measurements.measurements,
    runs.protocol_digest,
    protocols.title as protocol_title,
    protocols.harness,
    protocols.timer,
    try(protocol_manifests.canonical_json ->> '$.spec.correctness.reference') as correctness_reference,
    protocols.family as comparability_family,
    runs.environment_digest,
    environments.gpu_product,
    environments.gpu_architecture,
    environments.hardware_architecture as published_architecture,
    environments.cuda_toolkit,
    environments.driver,
    concat_ws(' ', environments.framework_name, environments.framework_version) as framework,
    environments.libraries_json,
    runs.log_digest,
    runs.log_size_bytes,
    coalesce(run_caveats.caveats, []) as caveats,
    list_concat(
        coalesce(run_corrections.corrections, []),
        coalesce(implementation_corrections.corrections, [])
    ) as corrections,
    coalesce(run_reproductions.reproductions, []) as reproductions,
    runs.source,
    runs.external_id,
    runs.dataset,
    runs.revision,
    runs.path,
    runs.line,
    runs.publication_id,
    runs.published_at
from runs
left join ranked_runs
    on
        ranked_runs.run_digest = runs.run_digest
        and ranked_runs.comparison_key = runs.comparison_key
left join records on records.comparison_key = runs.comparison_key
left join ranked_implementations
    on
        ranked_implementations.group_number = runs.group_number
        and ranked_implementations.implementation_digest = runs.implementation_digest
left join operations on operations.operation_digest = runs.operation_digest
left join implementations on implementations.implementation_digest = runs.implementation_digest
left join projects on projects.project_digest = implementations.project_digest
left join workloads on workloads.workload_digest = runs.workload_digest
left join protocols on protocols.protocol_digest = runs.protocol_digest
left join environments on environments.environment_digest = runs.environment_digest
left join manifests as workload_manifests on workload_manifests.digest = runs.workload_digest
left join manifests as protocol_manifests on protocol_manifests.digest = runs.protocol_digest
left join run_measurements on run_measurements.run_digest = runs.run_digest
left join run_caveats
    on run_caveats.run_digest = runs.run_digest and run_caveats.condition_number = runs.condition_number
left join run_reproductions on run_reproductions.side_digest = runs.run_digest
left join corrections_by_target as run_corrections
    on
        run_corrections.target_kind = 'run'
        and run_corrections.target_digest = runs.run_digest
left join corrections_by_target as implementation_corrections
    on
        implementation_corrections.target_kind = 'implementation'
        and implementation_corrections.target_digest = runs.implementation_digest
