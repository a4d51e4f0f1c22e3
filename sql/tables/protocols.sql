-- protocols: one row per BenchmarkProtocol
-- key: protocol_digest
-- column protocol_digest: digest of the BenchmarkProtocol manifest
-- column name: name
-- column title: title
-- column harness: program that measured
-- column timer: how time was taken
-- column primary_statistic: statistic that ranks, e.g. mean
-- column family: operation family, e.g. gqa-paged
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    protocol_digest,
    name,
    title,
    harness,
    timer,
    primary_statistic,
    family,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_protocols
-- Without those that only trials were made with: no run of another table names them.
where
    protocol_digest not in (select protocol_digest from trials where protocol_digest is not null)
    or protocol_digest in (select protocol_digest from run_conditions)
