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
with repeats as (
    select
        strict_group,
        comparison_key,
        implementation_digest,
        author,
        exact_median_ns,
        minimum_ns,
        maximum_ns,
        repeats,
        runs - repeats as excluded,
        first_observed_at
    from implementation_results
    where repeats > 0
),

taken as (
    select
        *,
        count(*) over (partition by strict_group) as group_size,
        row_number() over by_median as position,
        coalesce(minimum_ns <= lag(maximum_ns) over by_median, false) as overlaps_previous
    from repeats
    window
        by_median as (
            partition by strict_group
            order by exact_median_ns, minimum_ns, maximum_ns, implementation_digest
        )
),

-- Where no range overlaps the one before it nothing ties, and the position is the rank.
groups_with_overlaps as (
    select distinct strict_group
    from taken
    where overlaps_previous
),

-- One that does not overlap the one before it begins a rank, whatever came earlier.
stretches as (
    select
        taken.*,
        sum((not taken.overlaps_previous)::integer) over (
            partition by taken.strict_group
            order by taken.position
            rows unbounded preceding
        ) as stretch
    from taken
    semi join groups_with_overlaps using (strict_group)
),

-- By median, a member never lies wholly above the next: it overlaps when the next one's minimum is
-- at most its maximum. So the walk needs the lowest maximum of the current rank, nothing else.
walks as (
    select
        strict_group,
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
    group by strict_group, stretch
),

walked_starts as (
    select
        strict_group,
        unnest(final_state.starts) as position
    from walks
),

ranked as (
    select
        stretches.* exclude (stretch),
        sum((walked_starts.position is not null)::integer) over (
            partition by stretches.strict_group
            order by stretches.position
            rows unbounded preceding
        )::bigint as rank,
        walked_starts.position is null as tied_with_previous
    from stretches
    left join walked_starts
        on
            walked_starts.strict_group = stretches.strict_group
            and walked_starts.position = stretches.position

    union all

    select
        taken.*,
        taken.position as rank,
        false as tied_with_previous
    from taken
    anti join groups_with_overlaps using (strict_group)
)

select
    strict_group,
    comparison_key,
    implementation_digest,
    author,
    floor(exact_median_ns + 0.5)::bigint as median_ns,
    minimum_ns,
    maximum_ns,
    repeats,
    excluded,
    first_observed_at,
    rank,
    group_size,
    position as display_order,
    tied_with_previous,
    'ranking-v2' as policy_version
from ranked
