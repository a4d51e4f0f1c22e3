-- ranked_runs: one row per eligible run, ranked inside its comparison group
-- formula: ranking-v1
-- key: run_digest
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column run_digest: the run
-- column primary_value: primary statistic of the latency, in ns; lower is better
-- column rank: dense rank inside the comparison group, 1 is the fastest
-- column group_size: eligible runs in the group
-- column display_order: position in the group's list, from 1; inside a rank the better evidence
--     comes first, then the newer, then the smaller digest
-- column tied_with_previous: whether the run shares its rank with the one before it in the list
-- column policy_version: version of the ranking rules
-- assert positive_rank: rank >= 1
-- assert rank_in_group: rank <= display_order and display_order <= group_size
with eligible as (
    select
        runs.run_digest,
        runs.comparison_key,
        runs.primary_value,
        runs.evidence_level,
        runs.observed_at
    from runs
    inner join run_eligibility using (run_digest)
    where run_eligibility.eligible
),

ranked as (
    select
        *,
        dense_rank() over (partition by comparison_key order by primary_value) as rank
    from eligible
),

ordered as (
    select
        *,
        count(*) over (partition by comparison_key) as group_size,
        row_number() over (
            partition by comparison_key
            order by
                rank,
                list_position(
                    ['replicated', 'verified', 'reproducible', 'reported'], evidence_level
                ),
                observed_at desc,
                run_digest
        ) as display_order
    from ranked
)

select
    comparison_key,
    run_digest,
    primary_value,
    rank,
    group_size,
    display_order,
    coalesce(
        rank = lag(rank) over (partition by comparison_key order by display_order), false
    ) as tied_with_previous,
    'ranking-v1' as policy_version
from ordered
