-- leaderboard_operations: one row per operation and GPU that was tried
-- formula: operations-v1
-- key: operation_digest, gpu_product
-- column operation_digest: digest of the OperationSpec manifest
-- column operation: name of the operation
-- column family: operation family
-- column gpu_product: device
-- column comparison_groups: comparison groups with an eligible run
-- column runs: runs, failures included
-- column runs_eligible: runs that are ranked
-- column implementations_tried: implementations with a run
-- column implementations_passed: implementations with an eligible run
-- column authors_passed: authors with an eligible run
-- column most_wins_author: author that is first by ranking-v2 in the most strict groups; by name
--     where equal
-- column most_wins: how many first places that are, ties included
-- column latest_run_at: time of the newest run (UTC)
-- column formula_version: version of this formula
-- assert passed_were_tried: implementations_passed <= implementations_tried
with wins as (
    select
        implementation_results.operation_digest,
        implementation_results.gpu_product,
        implementation_results.author,
        count(distinct implementation_results.strict_group) as wins
    from ranked_implementations
    inner join implementation_results using (strict_group, implementation_digest)
    where ranked_implementations.rank = 1
    group by all
),

winners as (
    select *
    from wins
    qualify row_number() over (
        partition by operation_digest, gpu_product order by wins desc, author
    ) = 1
),

counted as (
    select
        operation_digest,
        gpu_product,
        count(distinct comparison_key) filter (where repeats > 0) as comparison_groups,
        sum(runs)::bigint as runs,
        sum(repeats)::bigint as runs_eligible,
        count(distinct implementation_digest) as implementations_tried,
        count(distinct implementation_digest) filter (where repeats > 0)
            as implementations_passed,
        count(distinct author) filter (where repeats > 0) as authors_passed,
        max(newest_run_at) as latest_run_at
    from implementation_results
    where gpu_product is not null
    group by operation_digest, gpu_product
)

select
    counted.operation_digest,
    operations.name as operation,
    operations.family,
    counted.gpu_product,
    counted.comparison_groups,
    counted.runs,
    counted.runs_eligible,
    counted.implementations_tried,
    counted.implementations_passed,
    counted.authors_passed,
    winners.author as most_wins_author,
    coalesce(winners.wins, 0) as most_wins,
    counted.latest_run_at,
    'operations-v1' as formula_version
from counted
inner join operations using (operation_digest)
left join winners using (operation_digest, gpu_product)
order by
    operations.name,
    counted.gpu_product
