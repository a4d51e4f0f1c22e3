-- runs: one row per BenchmarkRun
-- key: run_digest
-- column run_digest: digest of the BenchmarkRun manifest
-- column operation_digest: digest of the OperationSpec manifest
-- column workload_digest: digest of the WorkloadCase manifest
-- column implementation_digest: digest of the ImplementationRevision manifest
-- column protocol_digest: digest of the BenchmarkProtocol manifest
-- column environment_digest: digest of the ExecutionEnvironment manifest
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column correctness_key: digest of the correctness rules
-- column metric_key: metric, statistic and unit, or none
-- column status: passed or how it failed
-- column primary_metric: latency, or none
-- column primary_statistic: statistic that ranks, e.g. mean
-- column primary_value: primary statistic of the latency, in ns; lower is better; null where nothing was measured
-- column primary_unit: unit of primary_value: ns
-- column sample_count: number of samples, null where the source does not say
-- column uncertainty_low_ns: lower end of the 95% interval, in ns
-- column uncertainty_high_ns: upper end of the 95% interval, in ns
-- column evidence_level: reported, reproducible, verified or replicated
-- column has_raw_evidence: whether a log or raw samples are kept
-- column source_native: whether the source measured, not this pipeline
-- column source: slug of the source
-- column external_id: identifier at the source
-- column observed_at: when it was measured (UTC)
-- column definition_name: name of the definition
-- column solution_name: name of the solution
-- column author_directory: author directory that the file lies in
-- column workload_uuid: identifier of the workload as upstream writes it
-- column input_fingerprint: digest of every input descriptor, tensor files included, which workload identity ignores
-- column reference_digest: digest of the reference source, which operation identity ignores
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column condition_number: number of what it shares with runs made alike, see run_conditions
-- column group_number: number of the strict group, see run_conditions
-- column comparison_number: number of the comparison group, see run_conditions
-- column implementation_number: number of the implementation, see run_subjects
-- column latency_ms: latency as upstream writes it, in ms
-- column reference_latency_ms: latency of the reference as upstream writes it, in ms
-- column speedup_factor: reference latency over latency as upstream writes it
-- column reported_speedup: the same; null where it is no positive number or the reference took no
--     time, so that nothing is known of it
-- column max_absolute_error: largest absolute error
-- column max_relative_error: largest relative error
-- column correctness_extra_json: further correctness values of upstream, as JSON
-- column evaluation_extra_json: what else the source states of the evaluation and no other column has,
--     as JSON by name, e.g. `performance.kernel_ms`; null for nothing, and for runs published before
--     this was kept
-- column raw_timestamp: time as upstream writes it
-- column raw_status: status as upstream writes it
-- column raw_hardware: device as upstream writes it
-- column log_digest: digest of the log, see artifacts
-- column log_size_bytes: size of the log in bytes
-- column not_measured: whether the log says that the solution was skipped
-- column eligible: whether the run is ranked
-- column excluded_because: codes that keep it from being ranked, in this order: STATUS_<status>,
--     RETRACTED, SUPERSEDED, MISSING_PRIMARY_METRIC, LATENCY_NOT_POSITIVE; empty for an eligible run
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- note: A view over run_facts, run_conditions, run_origins and run_subjects: what many runs share is
--     kept once.
select
    run_facts.run_digest,
    run_conditions.operation_digest,
    run_conditions.workload_digest,
    run_subjects.implementation_digest,
    run_conditions.protocol_digest,
    run_conditions.environment_digest,
    run_conditions.comparison_key,
    run_origins.correctness_key,
    run_origins.metric_key,
    run_origins.status,
    run_origins.primary_metric,
    run_origins.primary_statistic,
    run_facts.primary_value,
    run_origins.primary_unit,
    run_facts.sample_count,
    run_facts.uncertainty_low_ns,
    run_facts.uncertainty_high_ns,
    run_origins.evidence_level,
    run_origins.has_raw_evidence,
    run_origins.source_native,
    run_origins.source,
    run_facts.external_id,
    run_facts.observed_at,
    run_conditions.definition_name,
    run_subjects.solution_name,
    run_subjects.author_directory,
    run_conditions.workload_uuid,
    run_conditions.input_fingerprint,
    run_conditions.reference_digest,
    run_conditions.strict_group,
    run_facts.condition_number,
    run_conditions.group_number,
    run_conditions.comparison_number,
    run_subjects.implementation_number,
    run_facts.latency_ms,
    run_facts.reference_latency_ms,
    run_facts.speedup_factor,
    case
        when
            run_facts.speedup_factor > 0
            and isfinite(run_facts.speedup_factor)
            and coalesce(run_facts.reference_latency_ms > 0, true)
            then run_facts.speedup_factor
    end as reported_speedup,
    run_facts.max_absolute_error,
    run_facts.max_relative_error,
    run_facts.correctness_extra_json,
    run_facts.evaluation_extra_json,
    run_facts.raw_timestamp,
    run_origins.raw_status,
    run_origins.raw_hardware,
    run_facts.log_digest,
    run_facts.log_size_bytes,
    run_facts.not_measured,
    run_facts.eligible,
    run_facts.excluded_because,
    run_origins.dataset,
    run_origins.revision,
    run_subjects.path,
    run_facts.line,
    run_origins.parser_version,
    run_origins.publication_id,
    run_origins.published_at
from run_facts
inner join run_conditions using (condition_number)
inner join run_origins using (origin_number)
inner join run_subjects using (subject_number)
