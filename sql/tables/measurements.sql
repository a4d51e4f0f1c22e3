-- measurements: one row per named value of a run
-- key: run_digest, metric, statistic
-- column run_digest: digest of the BenchmarkRun manifest
-- column metric: what was measured
-- column statistic: statistic
-- column unit: unit of value
-- column value: value in that unit
-- column sample_count: number of samples, null where the source does not say
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- uncompressed: run_digest
with hidden as (
    select published_runs.run_digest
    from published_runs
    semi join identity_aliases using (implementation_digest)
)

select
    run_digest,
    metric,
    statistic,
    unit,
    value,
    sample_count,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_measurements
anti join hidden using (run_digest)
