-- Comparison groups that hold runs of several operations or workloads.
-- column place: what is mixed
-- column example: comparison key of the group
with counted as (
    select
        comparison_key,
        count(distinct operation_digest) as operations,
        count(distinct workload_digest) as workloads,
        count(distinct protocol_digest) as protocols,
        count(distinct environment_digest) as environments
    from published_runs
    group by comparison_key
)

select
    case
        when operations > 1 then 'operations'
        when workloads > 1 then 'workloads'
        when protocols > 1 then 'protocols'
        else 'environments'
    end as place,
    comparison_key as example
from counted
where operations > 1 or workloads > 1 or protocols > 1 or environments > 1
