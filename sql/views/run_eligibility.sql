-- run_eligibility: one row per run, with the reasons that keep it from being ranked
-- formula: ranking-v1
-- key: run_digest
-- column run_digest: the run
-- column eligible: whether the run is ranked
-- column reasons: codes that keep it from being ranked, in this order: STATUS_<status>, RETRACTED,
--     SUPERSEDED, MISSING_PRIMARY_METRIC, LATENCY_NOT_POSITIVE; empty for an eligible run
-- note: A view of runs, which says it in its columns eligible and excluded_because. Whoever reads
--     runs takes those instead of joining this.
select
    run_digest,
    eligible,
    excluded_because as reasons
from runs
