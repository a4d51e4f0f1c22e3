-- measurements: one row per named value of a run
select
    md5(concat_ws(' ', run_digest, metric, statistic))::uuid::varchar as "id",
    substr(run_digest, 8, 32)::uuid::varchar as "runId",
    metric as "metric",
    statistic as "statistic",
    unit as "unit",
    case when value = floor(value) then value::hugeint end as "value",
    case when value <> floor(value) then value end as "value.fraction",
    sample_count as "sampleCount"
from measurements
order by run_digest, metric, statistic
