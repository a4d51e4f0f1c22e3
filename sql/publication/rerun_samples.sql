-- Which staged rows of the table rerun_samples are new: once per key, and in no publication yet.
-- Reads the view published_rerun_samples. Parameter: staged (list of Parquet files).
-- key: run_digest, series, call
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        run_digest, series, call,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by run_digest, series, call order by path, line) = 1
),

published as (
    select run_digest, series, call
    from published_rerun_samples
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.run_digest is not distinct from staged.run_digest
        and published.series is not distinct from staged.series
        and published.call is not distinct from staged.call
order by staged.file_index, staged.file_row_number
