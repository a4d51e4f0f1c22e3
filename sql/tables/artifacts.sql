-- artifacts: one row per kept source or log, without its content
-- key: artifact_digest
-- column artifact_digest: digest of the content
-- column kind: kind
-- column media_type: media type
-- column size_bytes: size in bytes
-- column license: licence under which it may be shown, null for none concluded
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    artifact_digest,
    kind,
    media_type,
    size_bytes,
    license,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_artifacts
