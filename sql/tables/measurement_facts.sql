-- measurement_facts: one row per named value of a run, with what it has for itself
-- key: run_digest, value_number
-- column run_digest: digest of the BenchmarkRun manifest
-- column value_number: metric and statistic, see measurement_sources
-- column source_number: what it shares with measurements of its file, see measurement_sources
-- column value: the value, in the unit that measurement_sources says
-- column sample_count: number of samples, null where the source does not say
-- column line: 1-based line of the file on which the document starts
-- uncompressed: run_digest
-- note: People read the view measurements, which has everything of a measurement.
select
    published.run_digest,
    measurement_sources.value_number,
    measurement_sources.source_number,
    published.value,
    published.sample_count,
    published.line
from published_measurements as published
anti join run_aliases using (run_digest)
anti join trials using (run_digest)
inner join measurement_sources
    on
        published.metric is not distinct from measurement_sources.metric
        and published.statistic is not distinct from measurement_sources.statistic
        and published.unit is not distinct from measurement_sources.unit
        and published.dataset is not distinct from measurement_sources.dataset
        and published.revision is not distinct from measurement_sources.revision
        and published.path is not distinct from measurement_sources.path
        and published.parser_version is not distinct from measurement_sources.parser_version
        and published.publication_id is not distinct from measurement_sources.publication_id
        and published.published_at is not distinct from measurement_sources.published_at
