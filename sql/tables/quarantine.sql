-- quarantine: one row per item that needs a person and still stands
-- key: dataset, path, line, reason, json_path, file_digest, inputs_digest, parser_version
-- column reason: reason code
-- column severity: error: not published; warning: published
-- column kind: kind
-- column json_path: JSON path of what is wrong
-- column message: what is wrong
-- column excerpt: beginning of the document
-- column file_digest: digest of the file's bytes
-- column inputs_digest: digest of what the file refers to
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    reason,
    severity,
    kind,
    json_path,
    message,
    excerpt,
    file_digest,
    inputs_digest,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_quarantine
