-- superseded_implementations: one row per implementation whose solution file has other content now
-- key: implementation_digest
-- column implementation_digest: the implementation that is no longer current
-- column replacement_digest: the implementation that the file holds now
-- column superseded_at: time of the newest revision of that file (UTC)
-- assert another_digest: implementation_digest <> replacement_digest
with lines as (
    select
        solutions.dataset,
        solutions.path,
        solutions.solution_name,
        solutions.implementation_digest,
        coalesce(identity_aliases.kept_digest, file_states.inputs_digest) as held_digest,
        file_states.revision_at,
        dataset_revisions.position
    from solutions
    left join file_states
        on file_states.dataset = solutions.dataset and file_states.path = solutions.path
    left join identity_aliases
        on identity_aliases.implementation_digest = file_states.inputs_digest
    left join dataset_revisions
        on
            dataset_revisions.dataset = solutions.dataset
            and dataset_revisions.revision = solutions.source_revision
),

-- What the file holds at its newest revision is current; a file may go back to older content.
placed as (
    select
        *,
        first_value(implementation_digest) over (
            partition by dataset, path, solution_name
            order by
                (implementation_digest = held_digest) desc nulls last,
                position desc nulls last,
                implementation_digest
        ) as current_digest
    from lines
)

-- Whatever is current in any file is not superseded.
select
    implementation_digest,
    min(current_digest) as replacement_digest,
    min(revision_at) as superseded_at
from placed
group by implementation_digest
having not bool_or(implementation_digest = current_digest)
