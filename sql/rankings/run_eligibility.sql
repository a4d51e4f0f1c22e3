-- run_eligibility: one row per run, with the reasons that keep it from being ranked
-- formula: ranking-v1
-- key: run_digest
-- column run_digest: the run
-- column eligible: whether the run is ranked
-- column reasons: codes that keep it from being ranked, in this order: STATUS_<status>, RETRACTED,
--     SUPERSEDED, MISSING_PRIMARY_METRIC; empty for an eligible run
-- assert eligible_without_reasons: eligible = (len(reasons) = 0)
with corrected as (
    select
        target_kind,
        target_digest,
        bool_or(action = 'retract') as retracted,
        bool_or(action = 'supersede') as superseded
    from corrections
    where action in ('retract', 'supersede')
    group by all
),

judged as (
    select
        runs.run_digest,
        runs.status,
        runs.primary_value,
        coalesce(by_run.retracted, false) or coalesce(by_implementation.retracted, false)
            as retracted,
        coalesce(by_run.superseded, false) or coalesce(by_implementation.superseded, false)
            as superseded
    from runs
    left join corrected as by_run
        on by_run.target_kind = 'run' and by_run.target_digest = runs.run_digest
    left join corrected as by_implementation
        on
            by_implementation.target_kind = 'implementation'
            and by_implementation.target_digest = runs.implementation_digest
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
