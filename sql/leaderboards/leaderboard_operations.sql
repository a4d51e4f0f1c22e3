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
-- column most_wins_author: author with most first places over the groups; by name where equal
-- column most_wins: how many first places that are, ties included
-- column latest_run_at: time of the newest run (UTC)
-- column formula_version: version of this formula
-- assert passed_were_tried: implementations_passed <= implementations_tried
with judged as (
    select
        runs.operation_digest,
        environments.gpu_product,
        runs.comparison_key,
        runs.run_digest,
        runs.implementation_digest,
        runs.author_directory,
        runs.observed_at,
        run_eligibility.eligible,
        ranked_runs.rank
    from runs
    inner join run_eligibility using (run_digest)
    inner join environments using (environment_digest)
    left join ranked_runs using (run_digest)
),

wins as (
    select
        operation_digest,
        gpu_product,
        author_directory,
        count(distinct comparison_key) as wins
    from judged
    where rank = 1
    group by all
),

winners as (
    select *
    from wins
    qualify row_number() over (
        partition by operation_digest, gpu_product order by wins desc, author_directory
    ) = 1
),

counted as (
    select
        operation_digest,
        gpu_product,
        count(distinct comparison_key) filter (where eligible) as comparison_groups,
        count(*) as runs,
        count(*) filter (where eligible) as runs_eligible,
        count(distinct implementation_digest) as implementations_tried,
        count(distinct implementation_digest) filter (where eligible) as implementations_passed,
        count(distinct author_directory) filter (where eligible) as authors_passed,
        max(observed_at) as latest_run_at
    from judged
    group by all
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
    winners.author_directory as most_wins_author,
    coalesce(winners.wins, 0) as most_wins,
    counted.latest_run_at,
    'operations-v1' as formula_version
from counted
inner join operations using (operation_digest)
left join winners using (operation_digest, gpu_product)
order by
    operations.name,
    counted.gpu_product
