-- run_aliases: one row per published run digest that another one stands for, see hidden_runs
-- key: run_digest
-- column run_digest: digest that is not shown
-- column shown_digest: digest of the run that is
-- assert another_digest: run_digest <> shown_digest
select distinct
    run_digest,
    shown_digest
from hidden_runs
where run_digest <> shown_digest
