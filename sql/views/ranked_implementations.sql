-- ranked_implementations: one row per implementation and strict group, ranked inside the group
-- formula: ranking-v2
-- key: strict_group, comparison_key, implementation_digest
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column group_number: number of the group, see strict_groups
-- column comparison_key: digest of what must agree for two runs to be comparable by ranking-v1
-- column implementation_digest: the implementation
-- column author: author directory of the implementation; the first by name where several have it
-- column median_ns: median of the latencies of its eligible runs, in ns, rounded half up
-- column minimum_ns: lowest of them, in ns
-- column maximum_ns: highest of them, in ns
-- column repeats: how many eligible runs that are
-- column excluded: runs of the implementation in this group that are not eligible
-- column first_observed_at: time of its first eligible run (UTC)
-- column rank: dense rank inside the strict group, 1 is the fastest
-- column group_size: implementations in the strict group
-- column display_order: position in the group's list, from 1
-- column tied_with_previous: whether it shares its rank with the one before it in the list
-- column policy_version: version of the ranking rules
-- note: A view over rank_facts and result_facts, which have numbers in place of digests.
-- note: Implementations are taken by median, minimum, maximum, then digest. One joins the last rank
--     only if its range of repeats overlaps the range of every member of that rank.
select
    strict_groups.strict_group,
    rank_facts.group_number,
    strict_groups.comparison_key,
    implementation_numbers.implementation_digest,
    result_facts.author,
    rank_facts.median_ns,
    rank_facts.minimum_ns,
    rank_facts.maximum_ns,
    result_facts.repeats,
    result_facts.runs - result_facts.repeats as excluded,
    result_facts.first_observed_at,
    rank_facts.rank,
    rank_facts.group_size,
    rank_facts.display_order,
    rank_facts.tied_with_previous,
    'ranking-v2' as policy_version
from rank_facts
inner join result_facts using (group_number, implementation_number)
inner join strict_groups using (group_number)
inner join implementation_numbers using (implementation_number)
