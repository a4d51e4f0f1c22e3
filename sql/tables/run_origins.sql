-- run_origins: one row per combination of what runs of one source and outcome share
-- key: origin_number
-- column origin_number: number of the combination, from 1
-- column correctness_key: digest of the correctness rules
-- column metric_key: metric, statistic and unit, or none
-- column status: passed or how it failed
-- column primary_metric: latency, or none
-- column primary_statistic: statistic that ranks, e.g. mean
-- column primary_unit: unit of primary_value: ns
-- column evidence_level: reported, reproducible, verified or replicated
-- column has_raw_evidence: whether a log or raw samples are kept
-- column source_native: whether the source measured, not this pipeline
-- column source: slug of the source
-- column raw_status: status as upstream writes it
-- column raw_hardware: device as upstream writes it
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- note: Many runs share all of this, so that it is kept once and not with each of them; the view
--     runs has both. The numbers are other ones after the next publication; nothing outside the
--     database keeps them.
with names_with_hidden as (
    -- Digests are read only where some are hidden: there are as many as runs.
    select distinct definition_name
    from hidden_runs
    union
    select distinct definition_name
    from published_runs
    semi join trials using (run_digest)
),

combinations as (
    select distinct
        correctness_key,
        metric_key,
        status,
        primary_metric,
        primary_statistic,
        primary_unit,
        evidence_level,
        has_raw_evidence,
        source_native,
        source,
        raw_status,
        raw_hardware,
        dataset,
        revision,
        parser_version,
        publication_id,
        published_at
    from published_runs
    anti join names_with_hidden using (definition_name)

    union

    select distinct
        correctness_key,
        metric_key,
        status,
        primary_metric,
        primary_statistic,
        primary_unit,
        evidence_level,
        has_raw_evidence,
        source_native,
        source,
        raw_status,
        raw_hardware,
        dataset,
        revision,
        parser_version,
        publication_id,
        published_at
    from published_runs
    semi join names_with_hidden using (definition_name)
    anti join hidden_runs using (run_digest, publication_id)
    anti join trials using (run_digest)
)

select
    row_number() over (order by combinations)::integer as origin_number,
    correctness_key,
    metric_key,
    status,
    primary_metric,
    primary_statistic,
    primary_unit,
    evidence_level,
    has_raw_evidence,
    source_native,
    source,
    raw_status,
    raw_hardware,
    dataset,
    revision,
    parser_version,
    publication_id,
    published_at
from combinations
