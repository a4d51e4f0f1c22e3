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
-- note: A view over run_rank_facts, which has a number in place of the comparison key.
-- note: Runs are taken by value, then by digest. A run joins the last rank only if it ties with
--     every run that has it; two runs tie when their values are equal and, outside source-native
--     groups, also when their uncertainty intervals overlap.
with keys as (
    select distinct
        comparison_number,
        comparison_key
    from run_conditions
)

select
    keys.comparison_key,
    run_rank_facts.run_digest,
    run_rank_facts.primary_value,
    run_rank_facts.rank,
    run_rank_facts.group_size,
    run_rank_facts.display_order,
    run_rank_facts.tied_with_previous,
    'ranking-v1' as policy_version
from run_rank_facts
inner join keys using (comparison_number)
