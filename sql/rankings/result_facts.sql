-- result_facts: one row per implementation and strict group that it has a run in, by numbers
-- formula: ranking-v2
-- key: group_number, implementation_number
-- column group_number: the strict group, see strict_groups
-- column implementation_number: the implementation, see implementation_numbers
-- column author: author directory of the implementation; the first by name where solutions of
--     several authors have the same source, see author_implementations
-- column runs: runs, skipped ones included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column repeats: runs that are eligible
-- column exact_median_ns: median of the latencies of the eligible runs, in ns
-- column median_ns: the same, rounded half up
-- column minimum_ns: lowest of them, in ns
-- column maximum_ns: highest of them, in ns
-- column first_observed_at: time of the first eligible run (UTC)
-- column newest_run_at: time of the newest run, eligible or not (UTC)
-- note: What the ranking of implementations and all leaderboards are made from. People read the view
--     implementation_results, which has the digests.
-- assert ordered_range: repeats = 0 or minimum_ns <= median_ns and median_ns <= maximum_ns
-- assert funnel: repeats <= runs_passed and runs_passed <= runs and runs_attempted <= runs
with numbered as (
    select
        run_conditions.group_number,
        run_subjects.implementation_number,
        run_subjects.author_number,
        run_facts.not_measured,
        coalesce(run_origins.status = 'passed', false) as passed,
        run_facts.eligible,
        case when run_facts.eligible then run_facts.primary_value end as eligible_ns,
        case when run_facts.eligible then run_facts.observed_at end as eligible_at,
        run_facts.observed_at
    from run_facts
    inner join run_conditions using (condition_number)
    inner join run_origins using (origin_number)
    inner join run_subjects using (subject_number)
),

authors as (
    select distinct
        author_number,
        author_directory
    from run_subjects
),

summed as (
    select
        group_number,
        implementation_number,
        min(author_number) as author_number,
        count(*) as runs,
        -- What passed was tried, whatever its log says.
        count(*) filter (where passed or not coalesce(not_measured, false)) as runs_attempted,
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
    -- A double is not exact beyond 2^53, and rounds past the largest number of all.
    greatest(
        summed.minimum_ns,
        least(summed.maximum_ns, try_cast(floor(summed.exact_median_ns + 0.5) as bigint))
    ) as median_ns,
    summed.minimum_ns,
    summed.maximum_ns,
    summed.first_observed_at,
    summed.newest_run_at
from summed
inner join authors using (author_number)
