-- measurement_sources: one row per combination of what measurements of one kind and file share
-- key: source_number
-- column source_number: number of the combination, from 1
-- column value_number: number of metric and statistic together, from 1
-- column metric: what was measured
-- column statistic: statistic
-- column unit: unit of the value
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- note: Many measurements share all of this, so that it is kept once and not with each of them; the
--     view measurements has both. The numbers are other ones after the next publication; nothing
--     outside the database keeps them.
with combinations as (
    select distinct
        metric,
        statistic,
        unit,
        dataset,
        revision,
        path,
        parser_version,
        publication_id,
        published_at
    from published_measurements
)

select
    row_number() over (order by combinations)::integer as source_number,
    dense_rank() over (order by metric, statistic)::integer as value_number,
    metric,
    statistic,
    unit,
    dataset,
    revision,
    path,
    parser_version,
    publication_id,
    published_at
from combinations
