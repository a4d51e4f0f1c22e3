-- Which staged rows of the table rerun_samples are new: once per key, and in no publication yet.
-- Parameters: staged and published (lists of Parquet files).
-- key: run_digest, series, call
-- column filename: staged file
-- column file_row_number: 0-based row of that file
with staged as (
    select
        run_digest, series, call,
        filename,
        file_row_number
    from read_parquet($staged, filename = true, file_row_number = true)
    qualify row_number() over (partition by run_digest, series, call order by path, line) = 1
),

published as (
    select run_digest, series, call
    from read_parquet($published)
)

select
    filename,
    file_row_number
from staged
anti join published using (run_digest, series, call)
order by filename, file_row_number
