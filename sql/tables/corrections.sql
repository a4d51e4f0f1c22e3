-- corrections: one row per retraction, supersession or attestation; nothing is ever taken back
-- key: correction_id
-- column correction_id: digest of the correction's content
-- column action: retract, supersede or attest
-- column target_kind: what is corrected: run or implementation
-- column target_digest: digest of the run or implementation
-- column replacement_digest: what takes its place, for a supersession
-- column author: who says so
-- column reason: why
-- column evidence_url: link to the evidence
-- column effective_at: time from which it holds (UTC)
-- column dataset: dataset that the row came from, empty for one that came from no dataset
-- column revision: dataset revision, where there is one
-- column path: file that holds the correction
-- column line: 1-based line of that file
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- warn known_action: action in ('retract', 'supersede', 'attest')
-- warn known_target: target_kind in ('run', 'implementation')
select
    correction_id,
    action,
    target_kind,
    target_digest,
    replacement_digest,
    author,
    reason,
    evidence_url,
    effective_at,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_corrections
qualify row_number() over (partition by correction_id order by published_at, path, line) = 1
