-- What is known of the files of a dataset: the newest published state of each content of a path.
-- Reads the view published_source_files. Parameters: dataset, parser_version.
-- key: path, file_digest
select
    path,
    file_digest,
    references_json,
    inputs_digest,
    documents,
    workload_rows,
    quarantined,
    reasons_json,
    newest_trace_at
from published_source_files
where dataset = $dataset and parser_version = $parser_version
qualify
    row_number() over (
        partition by path, file_digest
        order by publication_id desc, revision desc
    ) = 1
