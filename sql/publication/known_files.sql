-- What is known of the files of a dataset: the newest published state of each content of a path,
-- as this revision or an earlier one has it. What only later revisions have is read again, so that
-- what it holds is known to be from this one.
-- Reads the views published_source_files and published_revisions. Parameters: dataset,
-- parser_version, and the revision that is about to be read with its time (null where nothing
-- dates it).
-- key: path, file_digest
with dated as (
    select
        revision,
        min(revision_at) as revision_at
    from published_revisions
    where dataset = $dataset
    group by revision
)

select
    files.path,
    files.file_digest,
    files.references_json,
    files.inputs_digest,
    files.documents,
    files.workload_rows,
    files.quarantined,
    files.reasons_json,
    files.newest_trace_at
from published_source_files as files
left join dated using (revision)
where
    files.dataset = $dataset
    and files.parser_version = $parser_version
    and case
        when files.revision = $revision or $revision_at::timestamp is null then true
        else coalesce(dated.revision_at <= $revision_at::timestamp, false)
    end
qualify
    row_number() over (
        partition by files.path, files.file_digest
        order by files.publication_id desc, files.revision desc
    ) = 1
