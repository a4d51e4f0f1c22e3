-- Which staged rows of the table quarantine are new: once per key, and in no publication yet.
-- Reads the view published_quarantine. Parameter: staged (list of Parquet files).
-- key: dataset, path, line, reason, json_path, file_digest, inputs_digest, parser_version
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        dataset, path, line, reason, json_path, file_digest, inputs_digest, parser_version,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by dataset, path, line, reason, json_path, file_digest, inputs_digest, parser_version order by path, line) = 1
),

published as (
    select dataset, path, line, reason, json_path, file_digest, inputs_digest, parser_version
    from published_quarantine
)

select
    file_index,
    file_row_number
from staged
anti join published using (dataset, path, line, reason, json_path, file_digest, inputs_digest, parser_version)
order by file_index, file_row_number
