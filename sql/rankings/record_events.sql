-- record_events: one row per time that a run became the fastest of its comparison group
-- formula: ranking-v1
-- key: comparison_key, run_digest
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column run_digest: the run that took the record
-- column previous_run_digest: the run that held it before; null for the first of a group
-- column primary_value: the new record, in ns
-- column previous_value: the record before it, in ns; null for the first of a group
-- column at: time at which the run was observed (UTC)
-- column cause: why history has this event: new_run; late_import, where a run of the group that was
--     observed later had arrived before; retraction or supersession, where only the withdrawal of
--     a run that was as fast makes this one a record
-- column policy_version: version of the ranking rules
-- uncompressed: run_digest, previous_run_digest
-- note: Events are worked out anew from all eligible runs, in the order in which they were
--     observed, so that a late import and a correction leave nothing stale. A run arrives with
--     its dataset revision; where that has no time, with its publication.
-- assert strictly_faster: previous_value is null or primary_value < previous_value
with origins as (
    select
        run_origins.origin_number,
        run_origins.status = 'passed' as passed,
        coalesce(dataset_revisions.revision_at, run_origins.published_at) as arrived_at
    from run_origins
    left join dataset_revisions
        on
            dataset_revisions.dataset = run_origins.dataset
            and dataset_revisions.revision = run_origins.revision
),

arrivals as not materialized (
    select
        run_facts.run_digest,
        run_conditions.comparison_number,
        run_facts.primary_value,
        run_facts.observed_at,
        run_facts.eligible,
        run_facts.excluded_because,
        origins.arrived_at
    from run_facts
    inner join run_conditions using (condition_number)
    inner join origins using (origin_number)
    where origins.passed and run_facts.primary_value > 0
),

groups as (
    select
        comparison_number,
        min(observed_at) filter (where eligible) as first_at,
        arg_min(primary_value, observed_at) filter (where eligible) as first_value,
        arg_min(observed_at, primary_value) filter (where eligible) as best_at,
        -- Runs were withdrawn or came at different times; in all other groups nothing but a new
        -- run can be the cause.
        bool_or(not eligible) or min(arrived_at) < max(arrived_at) as has_history
    from arrivals
    group by comparison_number
),

-- Most runs take no record, since one that was observed before them is known to be as fast: the
-- group's first one, or its fastest. The others are few, and only those are sorted.
contenders as (
    select
        arrivals.run_digest,
        arrivals.comparison_number,
        arrivals.primary_value,
        arrivals.observed_at
    from arrivals
    inner join groups using (comparison_number)
    where
        arrivals.eligible
        and (arrivals.observed_at > groups.first_at and arrivals.primary_value >= groups.first_value)
        is not true
        and (arrivals.observed_at > groups.best_at) is not true
),

-- What had been best before each run: only a strictly lower value is a record.
compared as (
    select
        run_digest,
        comparison_number,
        primary_value,
        observed_at,
        min(primary_value) over (
            partition by comparison_number
            order by observed_at, run_digest
            rows between unbounded preceding and 1 preceding
        ) as best_before
    from contenders
),

taken as (
    select
        *,
        lag(run_digest) over (partition by comparison_number order by observed_at, run_digest)
            as previous_run_digest
    from compared
    where best_before is null or primary_value < best_before
),

groups_with_history as (
    select comparison_number
    from groups
    where has_history
),

with_history as (
    select
        run_digest,
        comparison_number,
        primary_value,
        observed_at,
        arrived_at,
        eligible,
        list_contains(excluded_because, 'RETRACTED') as retracted
    from arrivals
    semi join groups_with_history using (comparison_number)
),

history as (
    select
        run_digest,
        arrived_at,
        min(primary_value) filter (where not eligible and retracted)
            over earlier as best_retracted_before,
        min(primary_value) filter (where not eligible and not retracted)
            over earlier as best_superseded_before,
        min(arrived_at) filter (where eligible) over later as later_arrived_at
    from with_history
    window
        earlier as (
            partition by comparison_number
            order by observed_at, run_digest
            rows between unbounded preceding and 1 preceding
        ),
        later as (
            partition by comparison_number
            order by observed_at, run_digest
            rows between 1 following and unbounded following
        )
),

keys as (
    select distinct
        comparison_number,
        comparison_key
    from run_conditions
)

select
    keys.comparison_key,
    taken.run_digest,
    taken.previous_run_digest,
    taken.primary_value,
    taken.best_before as previous_value,
    taken.observed_at as at,
    case
        when history.best_retracted_before <= taken.primary_value then 'retraction'
        when history.best_superseded_before <= taken.primary_value then 'supersession'
        when history.later_arrived_at < history.arrived_at then 'late_import'
        else 'new_run'
    end as cause,
    'ranking-v1' as policy_version
from taken
inner join keys using (comparison_number)
left join history using (run_digest)
