-- What is known of each file of a dataset: its newest published state.
-- Reads the view published_source_files. Parameters: dataset, parser_version.
-- key: path
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
qualify row_number() over (partition by path order by publication_id desc) = 1
