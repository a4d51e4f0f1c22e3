-- leaderboard_operations: one row per operation and GPU that was tried
-- formula: operations-v2
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
with won_groups as (
    select distinct
        rank_facts.group_number,
        author_implementations.author
    from rank_facts
    inner join author_implementations using (group_number, implementation_number)
    where rank_facts.rank = 1 and author_implementations.repeats > 0
),

wins as (
    select
        strict_groups.board_number,
        won_groups.author,
        count(*) as wins
    from won_groups
    inner join strict_groups using (group_number)
    group by strict_groups.board_number, won_groups.author
),

winners as (
    select *
    from wins
    qualify row_number() over (partition by board_number order by wins desc, author) = 1
),

results_by_group as (
    select
        group_number,
        sum(runs)::bigint as runs,
        sum(repeats)::bigint as runs_eligible,
        max(newest_run_at) as latest_run_at
    from result_facts
    group by group_number
),

counted as (
    select
        strict_groups.operation_digest,
        strict_groups.gpu_product,
        strict_groups.board_number,
        count(distinct strict_groups.comparison_key)
            filter (where results_by_group.runs_eligible > 0) as comparison_groups,
        sum(results_by_group.runs)::bigint as runs,
        sum(results_by_group.runs_eligible)::bigint as runs_eligible,
        max(results_by_group.latest_run_at) as latest_run_at
    from results_by_group
    inner join strict_groups using (group_number)
    where strict_groups.gpu_product is not null
    group by strict_groups.operation_digest, strict_groups.gpu_product, strict_groups.board_number
),

results_by_implementation as (
    select
        strict_groups.board_number,
        author_implementations.implementation_number,
        author_implementations.author,
        bool_or(author_implementations.repeats > 0) as passed
    from author_implementations
    inner join strict_groups using (group_number)
    group by
        strict_groups.board_number,
        author_implementations.implementation_number,
        author_implementations.author
),

implementations_by_board as (
    select
        board_number,
        count(distinct implementation_number) as implementations_tried,
        count(distinct implementation_number) filter (where passed) as implementations_passed,
        count(distinct author) filter (where passed) as authors_passed
    from results_by_implementation
    group by board_number
)

select
    counted.operation_digest,
    operations.name as operation,
    operations.family,
    counted.gpu_product,
    counted.comparison_groups,
    counted.runs,
    counted.runs_eligible,
    implementations_by_board.implementations_tried,
    implementations_by_board.implementations_passed,
    implementations_by_board.authors_passed,
    winners.author as most_wins_author,
    coalesce(winners.wins, 0) as most_wins,
    counted.latest_run_at,
    'operations-v2' as formula_version
from counted
inner join operations using (operation_digest)
inner join implementations_by_board using (board_number)
left join winners using (board_number)
order by
    operations.name,
    counted.gpu_product
