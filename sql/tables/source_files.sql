-- source_files: one row per file of a dataset revision
-- key: dataset, revision, path, file_digest, inputs_digest, parser_version
-- column kind: kind
-- column author_directory: author directory that the file lies in
-- column file_digest: digest of the file's bytes
-- column blob_id: git blob or LFS identifier
-- column size_bytes: size in bytes
-- column documents: documents in the file
-- column workload_rows: documents that are workload rows
-- column quarantined: documents in quarantine
-- column reasons_json: reason codes of what is in quarantine with their counts, as JSON
-- column references_json: names that the file refers to, as JSON
-- column inputs_digest: digest of what the file refers to
-- column newest_trace_at: newest time that a trace of the file states (UTC)
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- uncompressed: file_digest
select
    kind,
    author_directory,
    file_digest,
    blob_id,
    size_bytes,
    documents,
    workload_rows,
    quarantined,
    reasons_json,
    references_json,
    inputs_digest,
    newest_trace_at,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_source_files
