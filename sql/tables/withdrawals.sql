-- withdrawals: one row per run or implementation that something withdrew
-- key: target_kind, target_digest
-- column target_kind: what is withdrawn: run or implementation
-- column target_digest: digest of the run or implementation
-- column retracted: whether a correction retracts it
-- column superseded: whether a correction supersedes it, or a newer revision of its solution file
-- note: Attestations withdraw nothing.
with causes as (
    select
        corrections.target_kind,
        -- What was withdrawn under a digest that another one stands for now is withdrawn still.
        coalesce(
            run_aliases.shown_digest, identity_aliases.kept_digest, corrections.target_digest
        ) as target_digest,
        corrections.action = 'retract' as retracts,
        corrections.action = 'supersede' as supersedes
    from corrections
    left join run_aliases
        on corrections.target_kind = 'run' and run_aliases.run_digest = corrections.target_digest
    left join identity_aliases
        on
            corrections.target_kind = 'implementation'
            and identity_aliases.implementation_digest = corrections.target_digest
    where corrections.action in ('retract', 'supersede')

    union all

    select
        'implementation' as target_kind,
        implementation_digest as target_digest,
        false as retracts,
        true as supersedes
    from superseded_implementations
)

select
    target_kind,
    target_digest,
    bool_or(retracts) as retracted,
    bool_or(supersedes) as superseded
from causes
group by target_kind, target_digest
