-- revisions: one row per dataset revision and author filter that was ingested
-- key: dataset, revision, snapshot_id
-- column revision_at: time of the revision (UTC)
-- column revision_at_source: where that time is from: commit, traces or ingestion
-- column authors: authors that were asked for, null for all
-- column snapshot_id: digest over the files
-- column location: where it was read
-- column url: page of the dataset
-- column files: number of files
-- column previous_revision: revision that this one is compared with, null for the first
-- column files_added: files that the previous revision does not have
-- column files_changed: files with other content than in the previous revision
-- column files_renamed: files of the previous revision under another path
-- column files_removed: files that only the previous revision has
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    revision_at,
    revision_at_source,
    authors,
    snapshot_id,
    location,
    url,
    files,
    previous_revision,
    files_added,
    files_changed,
    files_renamed,
    files_removed,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_revisions
