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
with judged as (
    select
        runs.run_digest,
        runs.status,
        runs.primary_value,
        coalesce(of_run.retracted, false) or coalesce(of_implementation.retracted, false)
            as retracted,
        coalesce(of_run.superseded, false) or coalesce(of_implementation.superseded, false)
            as superseded
    from runs
    left join withdrawals as of_run
        on of_run.target_kind = 'run' and of_run.target_digest = runs.run_digest
    left join withdrawals as of_implementation
        on
            of_implementation.target_kind = 'implementation'
            and of_implementation.target_digest = runs.implementation_digest
),

explained as (
    select
        run_digest,
        -- No list is made for a run without a reason.
        case
            when status <> 'passed' or retracted or superseded or primary_value is null
                then list_filter(
                    [
                        case when status <> 'passed' then 'STATUS_' || upper(status) end,
                        case when retracted then 'RETRACTED' end,
                        case when superseded then 'SUPERSEDED' end,
                        case when primary_value is null then 'MISSING_PRIMARY_METRIC' end
                    ],
                    lambda code: code is not null
                )
        end as reasons
    from judged
)

select
    run_digest,
    reasons is null as eligible,
    coalesce(reasons, []) as reasons
from explained
