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
-- column latency_ms: latency as upstream writes it, in ms
-- column reference_latency_ms: latency of the reference as upstream writes it, in ms
-- column speedup_factor: reference latency over latency as upstream writes it
-- column max_absolute_error: largest absolute error
-- column max_relative_error: largest relative error
-- column correctness_extra_json: further correctness values of upstream, as JSON
-- column raw_timestamp: time as upstream writes it
-- column raw_status: status as upstream writes it
-- column raw_hardware: device as upstream writes it
-- column log_digest: digest of the log, see artifacts
-- column log_size_bytes: size of the log in bytes
-- column not_measured: whether the log says that the solution was skipped
-- column eligible: whether the run is ranked
-- column excluded_because: codes that keep it from being ranked, in this order: STATUS_<status>,
--     RETRACTED, SUPERSEDED, MISSING_PRIMARY_METRIC; empty for an eligible run
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- note: A run is retracted or superseded by a correction of itself or of its implementation, and
--     superseded when its solution file has other content at a newer revision of the dataset.
--     Attestations change nothing here. What is not published is in no table at all.
-- note: Whether a run is ranked stands here and not in a table of its own, because joining two
--     tables of many million runs by digest costs more than all rankings together.
-- assert eligible_without_reasons: eligible = (len(excluded_because) = 0)
with judged as (
    select
        *,
        -- Looked up, not joined: a join takes the runs into memory when hardly any is withdrawn.
        run_digest in (
            select target_digest from withdrawals where target_kind = 'run' and retracted
        )
        or implementation_digest in (
            select target_digest from withdrawals where target_kind = 'implementation' and retracted
        ) as retracted,
        run_digest in (
            select target_digest from withdrawals where target_kind = 'run' and superseded
        )
        or implementation_digest in (
            select target_digest from withdrawals
            where target_kind = 'implementation' and superseded
        ) as superseded
    from published_runs
    anti join identity_aliases using (implementation_digest)
),

explained as (
    select
        *,
        -- No list is made for a run without a reason.
        case
            when status <> 'passed' or retracted or superseded or primary_value is null
                then list_filter(
                    [
                        case when status <> 'passed' then 'STATUS_' || upper(status) end,
                        case when retracted then 'RETRACTED' end,
                        case when superseded then 'SUPERSEDED' end,
                        case when primary_value is null then 'MISSING_PRIMARY_METRIC' end
                    ],
                    lambda code: code is not null
                )
        end as reasons
    from judged
)

select
    run_digest,
    operation_digest,
    workload_digest,
    implementation_digest,
    protocol_digest,
    environment_digest,
    comparison_key,
    correctness_key,
    metric_key,
    status,
    primary_metric,
    primary_statistic,
    primary_value,
    primary_unit,
    sample_count,
    uncertainty_low_ns,
    uncertainty_high_ns,
    evidence_level,
    has_raw_evidence,
    source_native,
    source,
    external_id,
    observed_at,
    definition_name,
    solution_name,
    author_directory,
    workload_uuid,
    input_fingerprint,
    reference_digest,
    -- Stricter than the comparison key, which ignores tensor files and the reference; and without
    -- the metric, so that a run that failed belongs to the group in which it was tried.
    md5(
        concat_ws(
            ' ',
            workload_digest,
            protocol_digest,
            environment_digest,
            coalesce(input_fingerprint, 'unknown'),
            coalesce(reference_digest, 'unknown')
        )
    ) as strict_group,
    latency_ms,
    reference_latency_ms,
    speedup_factor,
    max_absolute_error,
    max_relative_error,
    correctness_extra_json,
    raw_timestamp,
    raw_status,
    raw_hardware,
    log_digest,
    log_size_bytes,
    not_measured,
    reasons is null as eligible,
    coalesce(reasons, []) as excluded_because,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from explained
