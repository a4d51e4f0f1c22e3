-- ranked_implementations: one row per implementation and strict group, ranked inside the group
-- formula: ranking-v2
-- key: strict_group, comparison_key, implementation_digest
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column comparison_key: digest of what must agree for two runs to be comparable by ranking-v1
-- column implementation_digest: the implementation
-- column author: author directory of the implementation
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
-- note: Implementations are taken by median, minimum, maximum, then digest. One joins the last rank
--     only if its range of repeats overlaps the range of every member of that rank.
-- assert positive_rank: rank >= 1
-- assert ordered_range: minimum_ns <= median_ns and median_ns <= maximum_ns
-- assert rank_in_group: rank <= display_order and display_order <= group_size
with groups as (
    select
        strict_group,
        -- Sorting and joining by a number is several times as fast as by a digest.
        row_number() over (order by strict_group) as group_number,
        count(*) as group_size
    from implementation_results
    where repeats > 0
    group by strict_group
),

taken as (
    select
        groups.group_number,
        results.comparison_key,
        results.implementation_digest,
        results.author,
        results.exact_median_ns,
        results.minimum_ns,
        results.maximum_ns,
        results.repeats,
        results.runs - results.repeats as excluded,
        results.first_observed_at,
        row_number() over by_median as position,
        coalesce(results.minimum_ns <= lag(results.maximum_ns) over by_median, false)
            as overlaps_previous
    from implementation_results as results
    inner join groups using (strict_group)
    where results.repeats > 0
    window
        by_median as (
            partition by groups.group_number
            order by
                results.exact_median_ns,
                results.minimum_ns,
                results.maximum_ns,
                results.implementation_digest
        )
),

-- Where no range overlaps the one before it nothing ties, and the position is the rank.
groups_with_overlaps as (
    select distinct group_number
    from taken
    where overlaps_previous
),

-- One that does not overlap the one before it begins a rank, whatever came earlier.
stretches as (
    select
        taken.group_number,
        taken.position,
        taken.minimum_ns,
        taken.maximum_ns,
        sum((not taken.overlaps_previous)::integer) over (
            partition by taken.group_number
            order by taken.position
            rows unbounded preceding
        ) as stretch
    from taken
    semi join groups_with_overlaps using (group_number)
),

-- By median, a member never lies wholly above the next: it overlaps when the next one's minimum is
-- at most its maximum. So the walk needs the lowest maximum of the current rank, nothing else.
walks as (
    select
        group_number,
        list_reduce(
            list(
                { 'minimum': minimum_ns, 'ceiling': maximum_ns, 'starts': [position] }
                order by position
            ),
            lambda state, next: case
                when next.minimum <= state.ceiling
                    then {
                        'minimum': next.minimum,
                        'ceiling': least(state.ceiling, next.ceiling),
                        'starts': state.starts
                    }
                else {
                    'minimum': next.minimum,
                    'ceiling': next.ceiling,
                    'starts': list_concat(state.starts, next.starts)
                }
            end
        ) as final_state
    from stretches
    group by group_number, stretch
),

walked_starts as (
    select
        group_number,
        unnest(final_state.starts) as position
    from walks
),

walked as (
    select
        stretches.group_number,
        stretches.position,
        sum((walked_starts.position is not null)::integer) over (
            partition by stretches.group_number
            order by stretches.position
            rows unbounded preceding
        )::bigint as rank,
        walked_starts.position is null as tied_with_previous
    from stretches
    left join walked_starts
        on
            walked_starts.group_number = stretches.group_number
            and walked_starts.position = stretches.position
)

select
    groups.strict_group,
    taken.comparison_key,
    taken.implementation_digest,
    taken.author,
    floor(taken.exact_median_ns + 0.5)::bigint as median_ns,
    taken.minimum_ns,
    taken.maximum_ns,
    taken.repeats,
    taken.excluded,
    taken.first_observed_at,
    coalesce(walked.rank, taken.position) as rank,
    groups.group_size,
    taken.position as display_order,
    coalesce(walked.tied_with_previous, false) as tied_with_previous,
    'ranking-v2' as policy_version
from taken
inner join groups using (group_number)
left join walked
    on walked.group_number = taken.group_number and walked.position = taken.position
