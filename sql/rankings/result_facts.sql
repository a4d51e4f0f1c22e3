-- result_facts: one row per implementation and strict group that it has a run in, by numbers
-- formula: ranking-v2
-- key: group_number, implementation_number
-- column group_number: the strict group, see strict_groups
-- column implementation_number: the implementation, see implementation_numbers
-- column author: author directory of the implementation
-- column runs: runs, skipped ones included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column repeats: runs that are eligible
-- column exact_median_ns: median of the latencies of the eligible runs, in ns
-- column minimum_ns: lowest of them, in ns
-- column maximum_ns: highest of them, in ns
-- column first_observed_at: time of the first eligible run (UTC)
-- column newest_run_at: time of the newest run, eligible or not (UTC)
-- note: What the ranking of implementations and all leaderboards are made from. People read the view
--     implementation_results, which has the digests.
-- assert funnel: repeats <= runs_passed and runs_passed <= runs and runs_attempted <= runs
with authors as (
    select
        author_directory,
        row_number() over (order by author_directory)::integer as author_number
    from runs
    group by author_directory
),

numbered as (
    select
        strict_groups.group_number,
        implementation_numbers.implementation_number,
        authors.author_number,
        runs.not_measured,
        runs.status = 'passed' as passed,
        runs.eligible,
        case when runs.eligible then runs.primary_value end as eligible_ns,
        case when runs.eligible then runs.observed_at end as eligible_at,
        runs.observed_at
    from runs
    inner join strict_groups using (strict_group)
    inner join implementation_numbers using (implementation_digest)
    left join authors using (author_directory)
),

summed as (
    select
        group_number,
        implementation_number,
        min(author_number) as author_number,
        count(*) as runs,
        count(*) filter (where not not_measured) as runs_attempted,
        count(*) filter (where passed) as runs_passed,
        count(*) filter (where eligible) as repeats,
        median(eligible_ns) as exact_median_ns,
        min(eligible_ns) as minimum_ns,
        max(eligible_ns) as maximum_ns,
        min(eligible_at) as first_observed_at,
        max(observed_at) as newest_run_at
    from numbered
    group by group_number, implementation_number
)

select
    summed.group_number,
    summed.implementation_number,
    authors.author_directory as author,
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
left join authors using (author_number)
