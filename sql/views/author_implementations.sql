-- author_implementations: one row per author, implementation and strict group that the author ran it in
-- formula: ranking-v2
-- key: group_number, implementation_number, author
-- column group_number: the strict group, see strict_groups
-- column implementation_number: the implementation, see implementation_numbers
-- column author: author directory of the solution file that was measured
-- column runs: runs, skipped ones included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column repeats: runs that are eligible
-- column median_ns: median of the latencies of the eligible runs, in ns, rounded half up
-- column minimum_ns: lowest of them, in ns
-- note: Solutions with the same source are one implementation, whoever they are of. Here each author
--     has the runs of the own file; result_facts has those of all authors together.
with shared as (
    select implementation_number
    from run_subjects
    group by implementation_number
    having count(distinct author_number) > 1
),

numbered as (
    select
        run_conditions.group_number,
        run_subjects.implementation_number,
        run_subjects.author_directory as author,
        coalesce(run_facts.not_measured, false) as skipped,
        coalesce(run_origins.status = 'passed', false) as passed,
        run_facts.eligible,
        case when run_facts.eligible then run_facts.primary_value end as eligible_ns
    from run_facts
    inner join run_subjects using (subject_number)
    semi join shared using (implementation_number)
    inner join run_conditions using (condition_number)
    inner join run_origins using (origin_number)
),

apart as (
    select
        group_number,
        implementation_number,
        author,
        count(*) as runs,
        -- What passed was tried, whatever its log says.
        count(*) filter (where passed or not skipped) as runs_attempted,
        count(*) filter (where passed) as runs_passed,
        count(*) filter (where eligible) as repeats,
        median(eligible_ns) as exact_median_ns,
        min(eligible_ns) as minimum_ns,
        max(eligible_ns) as maximum_ns
    from numbered
    group by group_number, implementation_number, author
)

select
    group_number,
    implementation_number,
    author,
    runs,
    runs_attempted,
    runs_passed,
    repeats,
    median_ns,
    minimum_ns
from result_facts
anti join shared using (implementation_number)
union all
select
    group_number,
    implementation_number,
    author,
    runs,
    runs_attempted,
    runs_passed,
    repeats,
    greatest(
        minimum_ns, least(maximum_ns, try_cast(floor(exact_median_ns + 0.5) as bigint))
    ) as median_ns,
    minimum_ns
from apart
