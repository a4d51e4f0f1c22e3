-- Which staged rows of the table measurements are new: once per key, and in no publication yet.
-- Reads the view published_measurements. Parameter: staged (list of Parquet files).
-- key: run_digest, metric, statistic
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with staged as (
    select
        run_digest, metric, statistic,
        file_index,
        file_row_number
    from read_parquet($staged, file_row_number = true)
    qualify row_number() over (partition by run_digest, metric, statistic order by path, line) = 1
),

published as (
    select run_digest, metric, statistic
    from published_measurements
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.run_digest is not distinct from staged.run_digest
        and published.metric is not distinct from staged.metric
        and published.statistic is not distinct from staged.statistic
order by staged.file_index, staged.file_row_number
