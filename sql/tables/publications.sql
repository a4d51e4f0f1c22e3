-- publications: one row per publication, oldest first
-- key: publication_id
-- column publication_id: identifier; sorts by time
-- column published_at: when it was published (UTC)
-- column kind: ingest, rerun, correction or genesis
-- column dataset: dataset that was ingested, null for other kinds
-- column revision: dataset revision that was ingested, null for other kinds
-- column new_runs: runs that it brought
-- column new_rows: rows that it brought, all tables together
select
    publication_id,
    published_at,
    kind,
    dataset,
    revision,
    new_runs,
    new_rows
from published_publications
