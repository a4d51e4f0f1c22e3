-- rank_facts: one row per implementation and strict group, ranked inside the group, by numbers
-- formula: ranking-v2
-- key: group_number, implementation_number
-- column group_number: the strict group, see strict_groups
-- column implementation_number: the implementation, see implementation_numbers
-- column median_ns: median of the latencies of its eligible runs, in ns, rounded half up
-- column minimum_ns: lowest of them, in ns
-- column maximum_ns: highest of them, in ns
-- column rank: dense rank inside the strict group, 1 is the fastest
-- column group_size: implementations in the strict group
-- column display_order: position in the group's list, from 1
-- column tied_with_previous: whether it shares its rank with the one before it in the list
-- note: Implementations are taken by median, minimum, maximum, then digest (which the numbers are in
--     the order of). One joins the last rank only if its range of repeats overlaps the range of
--     every member of that rank. People read the view ranked_implementations, which has the digests.
-- assert positive_rank: rank >= 1
-- assert ordered_range: minimum_ns <= median_ns and median_ns <= maximum_ns
-- assert rank_in_group: rank <= display_order and display_order <= group_size
with listed as (
    select
        group_number,
        -- Sorted by their fields, one after the other.
        list_sort(
            list(
                {
                    'median': exact_median_ns,
                    'minimum': minimum_ns,
                    'maximum': maximum_ns,
                    'implementation_number': implementation_number,
                    'rounded_median': median_ns
                }
            )
        ) as members
    from result_facts
    where repeats > 0
    group by group_number
),

-- By median, a member never lies wholly above the next: it overlaps when the next one's minimum is
-- at most its maximum. So the walk needs the lowest maximum of the current rank, nothing else.
walked as (
    select
        group_number,
        members,
        list_reduce(
            list_transform(
                members,
                lambda member: {
                    'minimum': member.minimum, 'ceiling': member.maximum, 'ranks': [1::bigint]
                }
            ),
            lambda state, next: {
                'minimum': next.minimum,
                'ceiling': case
                    when next.minimum <= state.ceiling then least(state.ceiling, next.ceiling)
                    else next.ceiling
                end,
                'ranks': list_append(
                    state.ranks, state.ranks[-1] + (next.minimum > state.ceiling)::bigint
                )
            }
        ).ranks as ranks
    from listed
),

placed as (
    select
        group_number,
        len(members) as group_size,
        unnest(members) as member,
        unnest(ranks) as rank,
        unnest(range(1, len(members) + 1)) as display_order,
        unnest(
            list_transform(ranks, lambda rank, place: coalesce(rank = ranks[place - 1], false))
        ) as tied_with_previous
    from walked
)

select
    group_number,
    member.implementation_number,
    member.rounded_median as median_ns,
    member.minimum as minimum_ns,
    member.maximum as maximum_ns,
    rank,
    group_size,
    display_order,
    tied_with_previous
from placed
