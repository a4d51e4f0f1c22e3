-- measurements: one row per named value of a run
select
    md5(concat_ws(' ', run_digest, metric, statistic))::uuid::varchar as "id",
    try_cast(substr(run_digest, 8, 32) as uuid)::varchar as "runId",
    metric as "metric",
    statistic as "statistic",
    unit as "unit",
    case when value = floor(value) then try_cast(value as hugeint) end as "value",
    case when value <> floor(value) or try_cast(value as hugeint) is null then value end
        as "value.fraction",
    sample_count as "sampleCount"
from measurements
order by run_digest, metric, statistic
