-- leaderboard_authors_upstream: one row per author and GPU, scored as FlashInfer-Bench scores
-- formula: flashinfer-bench-author-score-v2
-- key: gpu_product, author
-- column gpu_product: device
-- column author: author directory
-- column definitions_attempted: operations that the author has a run of and the baseline passed
-- column definitions_failed: of them, those scored 0 because every solution of the author failed a run
-- column score: unweighted mean of the operations' scores; an operation's score is that of the
--     author's best solution; a solution's is the mean over its groups of the baseline's best latency
--     divided by the solution's best, or 0 where any of its runs failed
-- column wins: groups in which the author is faster than the baseline
-- column groups_compared: groups in which the author and the baseline passed
-- column formula_version: whose formula it is
-- note: A repeat counts as upstream counts it, by the fastest; elsewhere it is the median.
-- note: For comparison with upstream's own table, not for use: one failed run makes a solution 0, a
--     mean of ratios rewards one very slow baseline, and what was not tried does not count. Only
--     runs that FlashInfer-Bench itself reported count. A solution that was skipped counts as
--     failed, as it does upstream.
with reported as (
    select distinct run_conditions.group_number
    from run_facts
    inner join run_conditions using (condition_number)
    inner join run_origins using (origin_number)
    where run_origins.source = 'flashinfer-bench'
),

baselines as (
    select
        author_implementations.group_number,
        min(author_implementations.minimum_ns) as baseline_ns
    from author_implementations
    semi join reported using (group_number)
    where author_implementations.author = 'baseline' and author_implementations.repeats > 0
    group by author_implementations.group_number
),

ratios as (
    select
        strict_groups.gpu_product,
        author_implementations.author,
        strict_groups.operation_digest,
        author_implementations.implementation_number,
        baselines.baseline_ns / author_implementations.minimum_ns as ratio,
        author_implementations.runs > author_implementations.runs_passed as has_failure
    from author_implementations
    semi join reported using (group_number)
    inner join strict_groups using (group_number)
    left join baselines using (group_number)
    where strict_groups.gpu_product is not null
),

compared_operations as (
    select distinct
        strict_groups.gpu_product,
        strict_groups.operation_digest
    from baselines
    inner join strict_groups using (group_number)
),

by_solution as (
    select
        gpu_product,
        author,
        operation_digest,
        implementation_number,
        case when bool_or(has_failure) then 0 else coalesce(avg(ratio order by ratio), 0) end
            as score
    from ratios
    semi join compared_operations using (gpu_product, operation_digest)
    group by gpu_product, author, operation_digest, implementation_number
),

by_operation as (
    select
        gpu_product,
        author,
        operation_digest,
        max(score) as score
    from by_solution
    group by gpu_product, author, operation_digest
),

bests as (
    select
        author_implementations.group_number,
        author_implementations.author,
        min(author_implementations.minimum_ns) as best_ns
    from author_implementations
    semi join baselines using (group_number)
    group by author_implementations.group_number, author_implementations.author
),

by_group as (
    select
        strict_groups.gpu_product,
        bests.author,
        count(*) filter (where bests.best_ns < baselines.baseline_ns) as wins,
        count(bests.best_ns) as groups_compared
    from bests
    inner join baselines using (group_number)
    inner join strict_groups using (group_number)
    group by strict_groups.gpu_product, bests.author
)

select
    by_operation.gpu_product,
    by_operation.author,
    count(*) as definitions_attempted,
    count(*) filter (where by_operation.score = 0) as definitions_failed,
    avg(by_operation.score order by by_operation.operation_digest) as score,
    coalesce(max(by_group.wins), 0) as wins,
    coalesce(max(by_group.groups_compared), 0) as groups_compared,
    'flashinfer-bench-author-score-v2' as formula_version
from by_operation
left join by_group using (gpu_product, author)
group by by_operation.gpu_product, by_operation.author
order by
    by_operation.gpu_product,
    score desc,
    by_operation.author
