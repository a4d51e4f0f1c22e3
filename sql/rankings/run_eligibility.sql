-- run_eligibility: one row per run, with the reasons that keep it from being ranked
-- formula: ranking-v1
-- key: run_digest
-- column run_digest: the run
-- column eligible: whether the run is ranked
-- column reasons: codes that keep it from being ranked, in this order: STATUS_<status>, RETRACTED,
--     SUPERSEDED, MISSING_PRIMARY_METRIC; empty for an eligible run
-- note: A run is retracted or superseded by a correction of itself or of its implementation, and
--     superseded when its solution file has other content at a newer revision of the dataset.
--     Attestations change nothing here. What is not published is in no table at all.
-- assert eligible_without_reasons: eligible = (len(reasons) = 0)
with withdrawals as (
    select
        target_kind,
        target_digest,
        action = 'retract' as retracts,
        action = 'supersede' as supersedes
    from corrections
    where action in ('retract', 'supersede')

    union all

    select
        'implementation' as target_kind,
        implementation_digest as target_digest,
        false as retracts,
        true as supersedes
    from superseded_implementations
),

withdrawn_runs as (
    select
        target_digest as run_digest,
        bool_or(retracts) as retracted,
        bool_or(supersedes) as superseded
    from withdrawals
    where target_kind = 'run'
    group by target_digest
),

withdrawn_implementations as (
    select
        target_digest as implementation_digest,
        bool_or(retracts) as retracted,
        bool_or(supersedes) as superseded
    from withdrawals
    where target_kind = 'implementation'
    group by target_digest
),

judged as (
    select
        runs.run_digest,
        runs.status,
        runs.primary_value,
        coalesce(withdrawn_runs.retracted, false)
        or coalesce(withdrawn_implementations.retracted, false) as retracted,
        coalesce(withdrawn_runs.superseded, false)
        or coalesce(withdrawn_implementations.superseded, false) as superseded
    from runs
    left join withdrawn_runs using (run_digest)
    left join withdrawn_implementations using (implementation_digest)
),

explained as (
    select
        run_digest,
        list_filter(
            [
                case when status <> 'passed' then 'STATUS_' || upper(status) end,
                case when retracted then 'RETRACTED' end,
                case when superseded then 'SUPERSEDED' end,
                case when primary_value is null then 'MISSING_PRIMARY_METRIC' end
            ],
            lambda code: code is not null
        ) as reasons
    from judged
)

select
    run_digest,
    len(reasons) = 0 as eligible,
    reasons
from explained
