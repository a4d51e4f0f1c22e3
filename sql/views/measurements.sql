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
-- note: A view over measurement_facts and measurement_sources: what many measurements share is kept
--     once.
select
    measurement_facts.run_digest,
    measurement_sources.metric,
    measurement_sources.statistic,
    measurement_sources.unit,
    measurement_facts.value,
    measurement_facts.sample_count,
    measurement_sources.dataset,
    measurement_sources.revision,
    measurement_sources.path,
    measurement_facts.line,
    measurement_sources.parser_version,
    measurement_sources.publication_id,
    measurement_sources.published_at
from measurement_facts
inner join measurement_sources using (source_number)
