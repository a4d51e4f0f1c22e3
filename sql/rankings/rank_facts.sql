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
with taken as (
    select
        group_number,
        implementation_number,
        floor(exact_median_ns + 0.5)::bigint as median_ns,
        minimum_ns,
        maximum_ns,
        row_number() over by_median as position,
        count(*) over (
            by_median rows between unbounded preceding and unbounded following
        ) as group_size,
        coalesce(minimum_ns <= lag(maximum_ns) over by_median, false) as overlaps_previous
    from result_facts
    where repeats > 0
    window
        by_median as (
            partition by group_number
            order by exact_median_ns, minimum_ns, maximum_ns, implementation_number
        )
),

-- One that does not overlap the one before it begins a stretch and a rank, whatever came earlier.
stretches as (
    select
        group_number,
        position,
        minimum_ns,
        maximum_ns,
        max(case when not overlaps_previous then position end) over (
            partition by group_number
            order by position
            rows unbounded preceding
        ) as stretch
    from taken
),

-- Where the highest minimum is at most the lowest maximum, every member overlaps every other one.
stretches_to_walk as (
    select
        group_number,
        stretch
    from stretches
    group by group_number, stretch
    having max(minimum_ns) > min(maximum_ns)
),

members as (
    select
        group_number,
        stretch,
        list(
            { 'position': position, 'minimum': minimum_ns, 'ceiling': maximum_ns }
            order by position
        ) as members
    from stretches
    semi join stretches_to_walk using (group_number, stretch)
    group by group_number, stretch
),

-- By median, a member never lies wholly above the next: it overlaps when the next one's minimum is
-- at most its maximum. So the walk needs the lowest maximum of the current rank, nothing else.
walks as (
    select
        group_number,
        list_reduce(
            list_transform(
                members,
                lambda member: {
                    'minimum': member.minimum,
                    'ceiling': member.ceiling,
                    'starts': [member.position]
                }
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
    from members
),

walked_starts as (
    select
        group_number,
        unnest(final_state.starts) as position
    from walks
),

started as (
    select
        taken.*,
        not taken.overlaps_previous or walked_starts.position is not null as starts_rank
    from taken
    left join walked_starts
        on
            walked_starts.group_number = taken.group_number
            and walked_starts.position = taken.position
)

select
    group_number,
    implementation_number,
    median_ns,
    minimum_ns,
    maximum_ns,
    sum(starts_rank::integer) over (
        partition by group_number
        order by position
        rows unbounded preceding
    )::bigint as rank,
    group_size,
    position as display_order,
    not starts_rank as tied_with_previous
from started
