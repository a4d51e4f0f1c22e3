-- implementation_results: one row per implementation and strict group that it has a run in
-- formula: ranking-v2
-- key: strict_group, implementation_digest
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column implementation_digest: the implementation
-- column comparison_key: digest of what must agree for two runs to be comparable by ranking-v1;
--     null where nobody's run has a latency
-- column author: author directory of the implementation
-- column operation_digest: operation of the group
-- column workload_digest: workload of the group
-- column gpu_product: device of the group
-- column runs: runs, skipped ones included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column repeats: runs that are eligible
-- column exact_median_ns: median of the latencies of the eligible runs, in ns
-- column minimum_ns: lowest of them, in ns
-- column maximum_ns: highest of them, in ns
-- column first_observed_at: time of the first eligible run (UTC)
-- column newest_run_at: time of the newest run, eligible or not (UTC)
-- note: Only numbers are aggregated; texts come from strict_groups, because aggregates of texts do
--     not fit the memory for many million runs. What the ranking of implementations and all leaderboards are
--     made from.
-- assert funnel: repeats <= runs_passed and runs_passed <= runs and runs_attempted <= runs
with summed as (
    select
        runs.strict_group,
        runs.implementation_digest,
        min(runs.author_directory) as author,
        count(*) as runs,
        count(*) filter (where not runs.not_measured) as runs_attempted,
        count(*) filter (where runs.status = 'passed') as runs_passed,
        count(*) filter (where runs.eligible) as repeats,
        median(runs.primary_value) filter (where runs.eligible) as exact_median_ns,
        min(runs.primary_value) filter (where runs.eligible) as minimum_ns,
        max(runs.primary_value) filter (where runs.eligible) as maximum_ns,
        min(runs.observed_at) filter (where runs.eligible) as first_observed_at,
        max(runs.observed_at) as newest_run_at
    from runs
    group by runs.strict_group, runs.implementation_digest
)

select
    summed.strict_group,
    summed.implementation_digest,
    strict_groups.comparison_key,
    summed.author,
    strict_groups.operation_digest,
    strict_groups.workload_digest,
    strict_groups.gpu_product,
    summed.runs,
    summed.runs_attempted,
    summed.runs_passed,
    summed.repeats,
    summed.exact_median_ns,
    summed.minimum_ns,
    summed.maximum_ns,
    summed.first_observed_at,
    summed.newest_run_at
from summed
inner join strict_groups using (strict_group)
