-- Digests that were published and that nothing in the database answers to: neither shown nor stood
-- for by another one that is. One row per kind, with how many there are of each.
-- Reads the database and the published tables beside it.
-- key: place
with published as (
    select
        'runs' as place,
        run_digest as digest
    from published_runs
    union
    select
        'implementations' as place,
        implementation_digest as digest
    from published_implementations
    union
    select
        'operations' as place,
        operation_digest as digest
    from published_operations
    union
    select
        'workloads' as place,
        workload_digest as digest
    from published_workloads
),

shown as (
    select
        'runs' as place,
        run_digest as digest
    from run_facts
    union all
    select
        'runs' as place,
        run_digest as digest
    from trials
    union all
    select
        'implementations' as place,
        implementation_digest as digest
    from implementations
    union all
    select
        'operations' as place,
        operation_digest as digest
    from operations
    union all
    select
        'workloads' as place,
        workload_digest as digest
    from workloads
),

aliases as (
    select
        'runs' as place,
        run_digest as digest,
        shown_digest
    from run_aliases
    union all
    select
        'implementations' as place,
        implementation_digest as digest,
        kept_digest as shown_digest
    from identity_aliases
),

stood_for as (
    select
        aliases.place,
        aliases.digest
    from aliases
    semi join shown
        on shown.place = aliases.place and shown.digest = aliases.shown_digest
),

judged as (
    select
        published.place,
        published.digest,
        shown.digest is not null as is_shown,
        stood_for.digest is not null as is_stood_for
    from published
    left join shown on shown.place = published.place and shown.digest = published.digest
    left join stood_for
        on stood_for.place = published.place and stood_for.digest = published.digest
)

select
    place,
    count(*) as published,
    count(*) filter (where is_shown) as shown,
    count(*) filter (where not is_shown and is_stood_for) as stood_for,
    count(*) filter (where not is_shown and not is_stood_for) as vanished,
    coalesce(
        list(digest order by digest) filter (where not is_shown and not is_stood_for), []
    )[1:3] as examples
from judged
group by place
order by place
