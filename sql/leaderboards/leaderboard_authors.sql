-- leaderboard_authors: one row per author, GPU and operation family, and one over all families
-- formula: authors-v2
-- key: gpu_product, family, author
-- column gpu_product: device
-- column family: operation family; `all` for the row over all of them
-- column author: author directory
-- column groups_available: strict groups of this scope that anyone tried
-- column groups_attempted: of them, those with a run of this author that was measured
-- column groups_passed: of them, those with an eligible run of this author
-- column coverage: groups attempted per group available, 0 to 1
-- column wins: groups in which an implementation of this author has the lowest median, ties included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column runs_skipped: runs that the harness skipped after earlier failures
-- column correctness_rate: runs passed per run attempted, 0 to 1; null where none was
-- column groups_with_baseline: groups passed by this author in which the baseline passed too
-- column speedup_over_baseline: geometric mean over those groups of the baseline's lowest median
--     divided by this author's; above 1 is faster than the baseline
-- column formula_version: version of this formula
-- note: Every author that has a run is listed, also one that passed nothing. Read the speed-up
--     with groups_with_baseline and coverage beside it: it is over the groups that passed.
-- assert funnel: groups_passed <= groups_attempted and groups_attempted <= groups_available
-- assert wins_passed: wins <= groups_passed
with available as (
    select
        gpu_product,
        case when grouping(family) = 0 then family else 'all' end as family,
        count(distinct group_number) as groups_available
    from author_results
    group by grouping sets ((gpu_product, family), (gpu_product))
),

summed as (
    select
        gpu_product,
        case when grouping(family) = 0 then family else 'all' end as family,
        author,
        count(*) filter (where runs_attempted > 0) as groups_attempted,
        count(*) filter (where best_ns is not null) as groups_passed,
        count(*) filter (where best_ns = group_best_ns) as wins,
        sum(runs_attempted)::bigint as runs_attempted,
        sum(runs_passed)::bigint as runs_passed,
        sum(runs_skipped)::bigint as runs_skipped,
        count(speedup) as groups_with_baseline,
        exp(list_avg(list_sort(list(ln(speedup)) filter (where speedup is not null))))
            as speedup_over_baseline
    from author_results
    group by grouping sets ((gpu_product, family, author), (gpu_product, author))
)

select
    summed.gpu_product,
    summed.family,
    summed.author,
    available.groups_available,
    summed.groups_attempted,
    summed.groups_passed,
    summed.groups_attempted / available.groups_available as coverage,
    summed.wins,
    summed.runs_attempted,
    summed.runs_passed,
    summed.runs_skipped,
    summed.runs_passed / nullif(summed.runs_attempted, 0) as correctness_rate,
    summed.groups_with_baseline,
    summed.speedup_over_baseline,
    'authors-v2' as formula_version
from summed
inner join available using (gpu_product, family)
order by
    summed.gpu_product,
    summed.family,
    summed.speedup_over_baseline desc nulls last,
    summed.author
