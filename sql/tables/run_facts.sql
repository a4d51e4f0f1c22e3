-- run_facts: one row per BenchmarkRun, with what it has for itself
-- key: run_digest
-- column run_digest: digest of the BenchmarkRun manifest
-- column digest_head: number that the first 8 hexadecimal digits of the digest are
-- column condition_number: what it shares with runs that were made alike, see run_conditions
-- column origin_number: what it shares with runs of its source and outcome, see run_origins
-- column subject_number: what was measured, see run_subjects
-- column primary_value: primary statistic of the latency, in ns; lower is better; null where nothing was measured
-- column sample_count: number of samples, null where the source does not say
-- column uncertainty_low_ns: lower end of the 95% interval, in ns
-- column uncertainty_high_ns: upper end of the 95% interval, in ns
-- column external_id: identifier at the source
-- column observed_at: when it was measured (UTC)
-- column latency_ms: latency as upstream writes it, in ms
-- column reference_latency_ms: latency of the reference as upstream writes it, in ms
-- column speedup_factor: reference latency over latency as upstream writes it
-- column max_absolute_error: largest absolute error
-- column max_relative_error: largest relative error
-- column correctness_extra_json: further correctness values of upstream, as JSON
-- column evaluation_extra_json: what else the source states of the evaluation and no other column has,
--     as JSON by name, e.g. `performance.kernel_ms`; null for nothing, and for runs published before
--     this was kept
-- column raw_timestamp: time as upstream writes it
-- column log_digest: digest of the log, see artifacts
-- column log_size_bytes: size of the log in bytes
-- column not_measured: whether the log says that the solution was skipped
-- column eligible: whether the run is ranked
-- column excluded_because: codes that keep it from being ranked, in this order: STATUS_<status>,
--     RETRACTED, SUPERSEDED, MISSING_PRIMARY_METRIC, LATENCY_NOT_POSITIVE; empty for an eligible run
-- column line: 1-based line of the file on which the document starts
-- uncompressed: run_digest, external_id
-- note: A run is retracted or superseded by a correction of itself or of its implementation, and
--     superseded when its solution file has other content at a newer revision of the dataset.
--     Attestations change nothing here. What is not published is in no table at all, and
--     a trial is in trials only.
-- note: Nothing takes no time. A latency of 0 ns, which earlier versions published where a
--     source's rounds to it, is no record and has no ratio to anything.
-- note: Whether a run is ranked stands here and not in a table of its own, because joining two
--     tables of many million runs by digest costs more than all rankings together.
-- note: A run whose digest begins in some way is found by digest_head: to look for it among the
--     digests themselves means to read 71 characters of every run.
-- note: People read the view runs, which has everything of a run.
-- assert eligible_without_reasons: eligible = (len(excluded_because) = 0)
with placed as (
    select
        published.* exclude (implementation_digest),
        run_subjects.implementation_digest,
        run_conditions.condition_number,
        run_origins.origin_number,
        run_subjects.subject_number
    from published_runs as published
    anti join hidden_runs using (run_digest, publication_id)
    anti join trials using (run_digest)
    inner join run_conditions
        on
            published.operation_digest is not distinct from run_conditions.operation_digest
            and published.workload_digest is not distinct from run_conditions.workload_digest
            and published.protocol_digest is not distinct from run_conditions.protocol_digest
            and published.environment_digest is not distinct from run_conditions.environment_digest
            and published.comparison_key is not distinct from run_conditions.comparison_key
            and published.definition_name is not distinct from run_conditions.definition_name
            and published.workload_uuid is not distinct from run_conditions.workload_uuid
            and published.input_fingerprint is not distinct from run_conditions.input_fingerprint
            and published.reference_digest is not distinct from run_conditions.reference_digest
    inner join run_origins
        on
            published.correctness_key is not distinct from run_origins.correctness_key
            and published.metric_key is not distinct from run_origins.metric_key
            and published.status is not distinct from run_origins.status
            and published.primary_metric is not distinct from run_origins.primary_metric
            and published.primary_statistic is not distinct from run_origins.primary_statistic
            and published.primary_unit is not distinct from run_origins.primary_unit
            and published.evidence_level is not distinct from run_origins.evidence_level
            and published.has_raw_evidence is not distinct from run_origins.has_raw_evidence
            and published.source_native is not distinct from run_origins.source_native
            and published.source is not distinct from run_origins.source
            and published.raw_status is not distinct from run_origins.raw_status
            and published.raw_hardware is not distinct from run_origins.raw_hardware
            and published.dataset is not distinct from run_origins.dataset
            and published.revision is not distinct from run_origins.revision
            and published.parser_version is not distinct from run_origins.parser_version
            and published.publication_id is not distinct from run_origins.publication_id
            and published.published_at is not distinct from run_origins.published_at
    inner join run_subjects
        on
            published.implementation_digest
            is not distinct from run_subjects.published_implementation
            and published.solution_name is not distinct from run_subjects.solution_name
            and published.author_directory is not distinct from run_subjects.published_author
            and published.path is not distinct from run_subjects.path
),

judged as (
    select
        *,
        -- Looked up, not joined: a join takes the runs into memory when hardly any is withdrawn.
        coalesce(
            run_digest in (
                select target_digest from withdrawals where target_kind = 'run' and retracted
            ),
            false
        )
        or coalesce(
            implementation_digest in (
                select target_digest from withdrawals
                where target_kind = 'implementation' and retracted
            ),
            false
        ) as retracted,
        coalesce(
            run_digest in (
                select target_digest from withdrawals where target_kind = 'run' and superseded
            ),
            false
        )
        or coalesce(
            implementation_digest in (
                select target_digest from withdrawals
                where target_kind = 'implementation' and superseded
            ),
            false
        ) as superseded
    from placed
),

explained as (
    select
        *,
        -- No list is made for a run without a reason.
        case
            when
                status is distinct from 'passed'
                or retracted
                or superseded
                or primary_value is null
                or primary_value <= 0
                then list_where(
                    [
                        'STATUS_' || upper(coalesce(status, 'unknown')),
                        'RETRACTED',
                        'SUPERSEDED',
                        'MISSING_PRIMARY_METRIC',
                        'LATENCY_NOT_POSITIVE'
                    ],
                    [
                        status is distinct from 'passed',
                        retracted,
                        superseded,
                        primary_value is null,
                        coalesce(primary_value <= 0, false)
                    ]
                )
        end as reasons
    from judged
)

select
    run_digest,
    try_cast('0x' || substr(run_digest, 8, 8) as uinteger) as digest_head,
    condition_number,
    origin_number,
    subject_number,
    primary_value,
    sample_count,
    uncertainty_low_ns,
    uncertainty_high_ns,
    external_id,
    observed_at,
    latency_ms,
    reference_latency_ms,
    speedup_factor,
    max_absolute_error,
    max_relative_error,
    correctness_extra_json,
    evaluation_extra_json,
    raw_timestamp,
    log_digest,
    log_size_bytes,
    not_measured,
    reasons is null as eligible,
    coalesce(reasons, []) as excluded_because,
    line
from explained
