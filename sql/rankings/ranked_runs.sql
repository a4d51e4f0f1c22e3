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
-- uncompressed: run_digest
-- note: Runs are taken by value, then by digest. A run joins the last rank only if it ties with
--     every run that has it; two runs tie when their values are equal and, outside source-native
--     groups, also when their uncertainty intervals overlap.
-- assert positive_rank: rank >= 1
-- assert rank_in_group: rank <= display_order and display_order <= group_size
with groups as (
    select
        comparison_number as group_number,
        min(comparison_key) as comparison_key,
        count(*) as group_size,
        bool_or(
            not source_native and uncertainty_low_ns is not null and uncertainty_high_ns is not null
        ) as has_intervals
    from runs
    where eligible
    group by comparison_number
),

eligible as not materialized (
    select
        runs.run_digest,
        groups.group_number,
        groups.has_intervals,
        runs.primary_value,
        case when not runs.source_native then runs.uncertainty_low_ns end as low,
        case when not runs.source_native then runs.uncertainty_high_ns end as high,
        case runs.evidence_level
            when 'replicated' then 1
            when 'verified' then 2
            when 'reproducible' then 3
            else 4
        end as evidence_order,
        runs.observed_at
    from runs
    inner join groups on groups.group_number = runs.comparison_number
    where runs.eligible
),

-- Without intervals only equal values tie, and every run with the same value has the same rank:
-- the order by rank is the order by value.
listed_by_value as (
    select
        group_number,
        run_digest,
        primary_value,
        dense_rank() over (partition by group_number order by primary_value) as rank,
        row_number() over in_list as display_order,
        coalesce(primary_value = lag(primary_value) over in_list, false) as tied_with_previous
    from eligible
    where not has_intervals
    window
        in_list as (
            partition by group_number
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
    where has_intervals
    window by_value as (partition by group_number order by primary_value, run_digest)
),

-- Where an interval ties two runs, "with every run of the rank" needs a walk through the group.
walked_groups as (
    select distinct group_number
    from taken
    where overlaps_previous and not equals_previous
),

stretches as (
    select
        taken.*,
        sum((not taken.equals_previous and not taken.overlaps_previous)::integer) over (
            partition by taken.group_number
            order by taken.position
            rows unbounded preceding
        ) as stretch
    from taken
    semi join walked_groups using (group_number)
),

-- The state of the walk is of constant size: of the current rank, the highest low and the lowest
-- high of the members below the current value (`under`; the next run must overlap them) and of
-- those at the current value (`level`; an equal value ties with them anyway). A run without
-- interval has low infinity and high -infinity, so that nothing overlaps it.
steps as (
    select
        group_number,
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
    group by group_number, stretch
),

walks as (
    select
        group_number,
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
        group_number,
        unnest(final_state.starts) as position,
        true as starts
    from walks
),

ranked_by_walk as (
    select
        taken.group_number,
        taken.run_digest,
        taken.primary_value,
        taken.evidence_order,
        taken.observed_at,
        sum(
            case
                when walked_groups.group_number is null then not taken.equals_previous
                else coalesce(walked_starts.starts, false)
            end::integer
        ) over (
            partition by taken.group_number
            order by taken.position
            rows unbounded preceding
        )::bigint as rank
    from taken
    left join walked_groups using (group_number)
    left join walked_starts
        on
            walked_starts.group_number = taken.group_number
            and walked_starts.position = taken.position
),

listed_by_walk as (
    select
        group_number,
        run_digest,
        primary_value,
        rank,
        row_number() over in_list as display_order,
        coalesce(rank = lag(rank) over in_list, false) as tied_with_previous
    from ranked_by_walk
    window
        in_list as (
            partition by group_number
            order by rank, evidence_order, observed_at desc, run_digest
        )
),

listed as (
    select * from listed_by_value
    union all
    select * from listed_by_walk
)

select
    groups.comparison_key,
    listed.run_digest,
    listed.primary_value,
    listed.rank,
    groups.group_size,
    listed.display_order,
    listed.tied_with_previous,
    'ranking-v1' as policy_version
from listed
inner join groups using (group_number)
