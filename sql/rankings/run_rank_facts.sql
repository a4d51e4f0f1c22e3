-- run_rank_facts: one row per eligible run, ranked inside its comparison group, by number
-- formula: ranking-v1
-- key: run_digest
-- column comparison_number: number of the comparison group, see run_conditions
-- column run_digest: the run
-- column primary_value: primary statistic of the latency, in ns; lower is better
-- column rank: dense rank inside the comparison group, 1 is the fastest
-- column group_size: eligible runs in the group
-- column display_order: position in the group's list, from 1; inside a rank the better evidence
--     comes first, then the newer, then the smaller digest
-- column tied_with_previous: whether the run shares its rank with the one before it in the list
-- uncompressed: run_digest
-- note: Runs are taken by value, then by digest. A run joins the last rank only if it ties with
--     every run that has it; two runs tie when their values are equal and, outside source-native
--     groups, also when their uncertainty intervals overlap.
-- note: People read the view ranked_runs, which has the digest of the group.
-- assert positive_rank: rank >= 1
-- assert rank_in_group: rank <= display_order and display_order <= group_size
with eligible as not materialized (
    select
        run_facts.run_digest,
        run_conditions.comparison_number,
        run_facts.primary_value,
        case when not run_origins.source_native then run_facts.uncertainty_low_ns end as low,
        case when not run_origins.source_native then run_facts.uncertainty_high_ns end as high,
        case run_origins.evidence_level
            when 'replicated' then 1
            when 'verified' then 2
            when 'reproducible' then 3
            else 4
        end as evidence_order,
        run_facts.observed_at
    from run_facts
    inner join run_conditions using (condition_number)
    inner join run_origins using (origin_number)
    where run_facts.eligible
),

groups_with_intervals as (
    select distinct comparison_number
    from eligible
    where low is not null and high is not null
),

-- Without intervals only equal values tie, and every run with the same value has the same rank:
-- the order by rank is the order by value.
listed_by_value as (
    select
        comparison_number,
        run_digest,
        primary_value,
        dense_rank() over (partition by comparison_number order by primary_value) as rank,
        count(*) over in_group as group_size,
        row_number() over in_list as display_order,
        coalesce(primary_value = lag(primary_value) over in_list, false) as tied_with_previous
    from eligible
    anti join groups_with_intervals using (comparison_number)
    window
        in_group as (partition by comparison_number),
        in_list as (
            partition by comparison_number
            order by primary_value, evidence_order, observed_at desc, run_digest
        )
),

-- A run that does not tie with the one before it begins a rank, whatever came earlier.
taken as (
    select
        *,
        row_number() over by_value as position,
        coalesce(primary_value = lag(primary_value) over by_value, false) as equals_previous,
        coalesce(
            low <= lag(high) over by_value and high >= lag(low) over by_value, false
        ) as overlaps_previous
    from eligible
    semi join groups_with_intervals using (comparison_number)
    window by_value as (partition by comparison_number order by primary_value, run_digest)
),

-- Where an interval ties two runs, "with every run of the rank" needs a walk through the group.
walked_groups as (
    select distinct comparison_number
    from taken
    where overlaps_previous and not equals_previous
),

stretches as (
    select
        taken.*,
        sum((not taken.equals_previous and not taken.overlaps_previous)::integer) over (
            partition by taken.comparison_number
            order by taken.position
            rows unbounded preceding
        ) as stretch
    from taken
    semi join walked_groups using (comparison_number)
),

-- The state of the walk is of constant size: of the current rank, the highest low and the lowest
-- high of the members below the current value (`under`; the next run must overlap them) and of
-- those at the current value (`level`; an equal value ties with them anyway). A run without
-- interval has low infinity and high -infinity, so that nothing overlaps it.
steps as (
    select
        comparison_number,
        stretch,
        list(
            {
                'value': primary_value::double,
                'under_low': '-infinity'::double,
                'under_high': 'infinity'::double,
                'level_low': coalesce(low::double, 'infinity'::double),
                'level_high': coalesce(high::double, '-infinity'::double),
                'starts': [position]
            }
            order by position
        ) as members
    from stretches
    group by comparison_number, stretch
),

walks as (
    select
        comparison_number,
        list_reduce(
            members,
            lambda state, run: case
                when
                    run.level_low <= state.under_high
                    and run.level_high >= state.under_low
                    and (
                        run.value = state.value
                        or (
                            run.level_low <= state.level_high
                            and run.level_high >= state.level_low
                        )
                    )
                    then {
                        'value': run.value,
                        'under_low': case
                            when run.value = state.value then state.under_low
                            else greatest(state.under_low, state.level_low)
                        end,
                        'under_high': case
                            when run.value = state.value then state.under_high
                            else least(state.under_high, state.level_high)
                        end,
                        'level_low': case
                            when run.value = state.value
                                then greatest(state.level_low, run.level_low)
                            else run.level_low
                        end,
                        'level_high': case
                            when run.value = state.value
                                then least(state.level_high, run.level_high)
                            else run.level_high
                        end,
                        'starts': state.starts
                    }
                else {
                    'value': run.value,
                    'under_low': run.under_low,
                    'under_high': run.under_high,
                    'level_low': run.level_low,
                    'level_high': run.level_high,
                    'starts': list_concat(state.starts, run.starts)
                }
            end
        ) as final_state
    from steps
),

walked_starts as (
    select
        comparison_number,
        unnest(final_state.starts) as position,
        true as starts
    from walks
),

ranked_by_walk as (
    select
        taken.comparison_number,
        taken.run_digest,
        taken.primary_value,
        taken.evidence_order,
        taken.observed_at,
        sum(
            case
                when walked_groups.comparison_number is null then not taken.equals_previous
                else coalesce(walked_starts.starts, false)
            end::integer
        ) over (
            partition by taken.comparison_number
            order by taken.position
            rows unbounded preceding
        )::bigint as rank
    from taken
    left join walked_groups using (comparison_number)
    left join walked_starts
        on
            walked_starts.comparison_number = taken.comparison_number
            and walked_starts.position = taken.position
),

listed_by_walk as (
    select
        comparison_number,
        run_digest,
        primary_value,
        rank,
        count(*) over in_group as group_size,
        row_number() over in_list as display_order,
        coalesce(rank = lag(rank) over in_list, false) as tied_with_previous
    from ranked_by_walk
    window
        in_group as (partition by comparison_number),
        in_list as (
            partition by comparison_number
            order by rank, evidence_order, observed_at desc, run_digest
        )
),

listed as (
    select * from listed_by_value
    union all
    select * from listed_by_walk
)

select
    comparison_number,
    run_digest,
    primary_value,
    rank,
    group_size,
    display_order,
    tied_with_previous
from listed
