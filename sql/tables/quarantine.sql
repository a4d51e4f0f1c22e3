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
-- column first_seen: time of the oldest revision with the file in this state (UTC); of the
--     publication where the revision has no time
-- column last_seen: the same of the newest revision
-- note: An item stands as long as its file, what the file refers to and the reading rules are as
--     they were when it was found, at the newest revision of the dataset. A corrected file, a
--     corrected definition and a removed file clear it.
-- assert seen_in_order: first_seen <= last_seen
with seen as (
    select
        files.dataset,
        files.path,
        files.file_digest,
        files.inputs_digest,
        min(coalesce(dataset_revisions.revision_at, files.published_at)) as first_seen,
        max(coalesce(dataset_revisions.revision_at, files.published_at)) as last_seen
    from published_source_files as files
    inner join dataset_revisions
        on
            dataset_revisions.dataset = files.dataset
            and dataset_revisions.revision = files.revision
    group by files.dataset, files.path, files.file_digest, files.inputs_digest
),

-- A file that could not be read at all has no digest; being listed clears it.
standing as (
    select items.*
    from published_quarantine as items
    left join file_states
        on file_states.dataset = items.dataset and file_states.path = items.path
    where
        case
            when file_states.path is null then items.file_digest is null
            else
                not file_states.removed
                and file_states.file_digest is not distinct from items.file_digest
                and file_states.inputs_digest is not distinct from items.inputs_digest
                and file_states.parser_version = items.parser_version
        end
)

select
    standing.reason,
    standing.severity,
    standing.kind,
    standing.json_path,
    standing.message,
    standing.excerpt,
    standing.file_digest,
    standing.inputs_digest,
    standing.dataset,
    standing.revision,
    standing.path,
    standing.line,
    standing.parser_version,
    standing.publication_id,
    standing.published_at,
    coalesce(seen.first_seen, standing.published_at) as first_seen,
    coalesce(seen.last_seen, standing.published_at) as last_seen
from standing
left join seen
    on
        seen.dataset = standing.dataset
        and seen.path = standing.path
        and seen.file_digest is not distinct from standing.file_digest
        and seen.inputs_digest is not distinct from standing.inputs_digest
