-- leaderboard_solutions: one row per implementation and GPU that it was tried on
-- formula: solutions-v2
-- key: implementation_digest, gpu_product
-- column implementation_digest: the implementation
-- column solution: name of its first solution file
-- column author: author directory of that file
-- column operation_digest: operation that it implements
-- column operation: name of the operation
-- column language: language token
-- column gpu_product: device
-- column groups_attempted: strict groups with a run that was measured
-- column groups_passed: strict groups with an eligible run
-- column wins: strict groups in which its median shares rank 1 of ranking-v2
-- column runs: runs, skipped ones included
-- column runs_passed: runs that passed
-- column groups_with_baseline: groups passed by it in which the baseline passed too
-- column speedup_over_baseline: geometric mean over those groups of the baseline's lowest median
--     divided by this implementation's median
-- column slowdown_to_best: geometric mean over the groups passed of this implementation's median
--     divided by the lowest median of the group; 1 where it is always the fastest
-- column formula_version: version of this formula
-- uncompressed: implementation_digest
-- assert wins_passed: wins <= groups_passed
with tried as (
    select
        result_facts.implementation_number,
        strict_groups.gpu_product,
        count(*) filter (where result_facts.runs_attempted > 0) as groups_attempted,
        sum(result_facts.runs)::bigint as runs,
        sum(result_facts.runs_passed)::bigint as runs_passed
    from result_facts
    inner join strict_groups using (group_number)
    where strict_groups.gpu_product is not null
    group by result_facts.implementation_number, strict_groups.gpu_product
),

baselines as (
    select
        group_number,
        baseline_ns
    from author_facts
    where author = 'baseline'
),

bests as (
    select
        group_number,
        min(median_ns) as best_median_ns
    from rank_facts
    where rank = 1
    group by group_number
),

placed as (
    select
        rank_facts.implementation_number,
        strict_groups.gpu_product,
        rank_facts.rank,
        -- Of a time that is none there are no ratios.
        case
            when least(rank_facts.median_ns, bests.best_median_ns) > 0
                then rank_facts.median_ns / bests.best_median_ns
        end as slowdown,
        case
            when least(rank_facts.median_ns, coalesce(baselines.baseline_ns, 0)) > 0
                then baselines.baseline_ns / rank_facts.median_ns
        end as speedup
    from rank_facts
    inner join strict_groups using (group_number)
    inner join bests using (group_number)
    left join baselines using (group_number)
),

summed as (
    select
        implementation_number,
        gpu_product,
        count(*) as groups_passed,
        count(*) filter (where rank = 1) as wins,
        count(speedup) as groups_with_baseline,
        exp(list_avg(list_sort(list(ln(speedup)) filter (where speedup is not null))))
            as speedup_over_baseline,
        exp(list_avg(list_sort(list(ln(slowdown)) filter (where slowdown is not null))))
            as slowdown_to_best
    from placed
    group by implementation_number, gpu_product
)

select
    implementation_numbers.implementation_digest,
    implementations.solution_name as solution,
    implementations.author_directory as author,
    implementations.operation_digest,
    operations.name as operation,
    implementations.language,
    tried.gpu_product,
    tried.groups_attempted,
    coalesce(summed.groups_passed, 0) as groups_passed,
    coalesce(summed.wins, 0) as wins,
    tried.runs,
    tried.runs_passed,
    coalesce(summed.groups_with_baseline, 0) as groups_with_baseline,
    summed.speedup_over_baseline,
    summed.slowdown_to_best,
    'solutions-v2' as formula_version
from tried
inner join implementation_numbers using (implementation_number)
inner join implementations using (implementation_digest)
left join operations using (operation_digest)
left join summed using (implementation_number, gpu_product)
order by
    operations.name,
    tried.gpu_product,
    summed.slowdown_to_best nulls last,
    implementation_numbers.implementation_digest
