-- leaderboard_authors: one row per author, GPU and operation family, and one over all families
-- formula: authors-v1
-- key: gpu_product, family, author
-- column gpu_product: device
-- column family: operation family; `all` for the row over all of them
-- column author: author directory
-- column groups_available: comparison groups of this scope that anyone tried
-- column groups_attempted: of them, those with a run of this author that was measured
-- column groups_passed: of them, those with an eligible run of this author
-- column coverage: groups attempted per group available, 0 to 1
-- column wins: groups in which this author has the fastest eligible run, ties included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column correctness_rate: runs passed per run attempted, 0 to 1
-- column groups_with_baseline: groups passed by this author in which the baseline passed too
-- column speedup_over_baseline: geometric mean over those groups of the baseline's best latency
--     divided by this author's; above 1 is faster than the baseline
-- column formula_version: version of this formula
-- note: A comparison group is workload, protocol, environment, inputs and reference, with or
--     without a latency, so that a run that failed counts where it was tried. Every author that
--     has a run is listed, also one that passed nothing.
-- assert funnel: groups_passed <= groups_attempted and groups_attempted <= groups_available
-- assert wins_passed: wins <= groups_passed
with tried as (
    select
        environments.gpu_product,
        operations.family,
        runs.author_directory as author,
        hash(
            runs.workload_digest,
            runs.protocol_digest,
            runs.environment_digest,
            runs.input_fingerprint,
            runs.reference_digest
        ) as group_id,
        count(*) filter (where not runs.not_measured) as runs_attempted,
        count(*) filter (where runs.status = 'passed') as runs_passed,
        min(runs.primary_value) filter (where run_eligibility.eligible) as best_value
    from runs
    inner join run_eligibility using (run_digest)
    inner join environments using (environment_digest)
    inner join operations using (operation_digest)
    group by all
),

compared as (
    select
        *,
        min(best_value) over (partition by group_id) as group_best,
        min(best_value) filter (where author = 'baseline') over (partition by group_id)
            as baseline_best
    from tried
),

available as (
    select
        gpu_product,
        coalesce(family, 'all') as family,
        count(distinct group_id) as groups_available
    from tried
    group by grouping sets ((gpu_product, family), (gpu_product))
),

summed as (
    select
        gpu_product,
        coalesce(family, 'all') as family,
        author,
        count(*) filter (where runs_attempted > 0) as groups_attempted,
        count(*) filter (where best_value is not null) as groups_passed,
        count(*) filter (where best_value = group_best) as wins,
        sum(runs_attempted)::bigint as runs_attempted,
        sum(runs_passed)::bigint as runs_passed,
        count(*) filter (where best_value is not null and baseline_best is not null)
            as groups_with_baseline,
        exp(avg(ln(baseline_best / best_value))) as speedup_over_baseline
    from compared
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
    summed.runs_passed / nullif(summed.runs_attempted, 0) as correctness_rate,
    summed.groups_with_baseline,
    summed.speedup_over_baseline,
    'authors-v1' as formula_version
from summed
inner join available using (gpu_product, family)
