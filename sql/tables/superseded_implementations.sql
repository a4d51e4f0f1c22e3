-- superseded_implementations: one row per implementation whose solution file has other content now
-- key: implementation_digest
-- column implementation_digest: the implementation that is no longer current
-- column replacement_digest: the implementation that the file holds now
-- column superseded_at: time of the newest revision of that file (UTC)
-- note: Only an implementation of the same operation takes another one's place: where the
--     definition changed in place, what implements the old operation stays as it was.
-- assert another_digest: implementation_digest <> replacement_digest
with holdings as (
    select
        files.dataset,
        files.path,
        coalesce(identity_aliases.kept_digest, files.inputs_digest) as implementation_digest,
        max(dataset_revisions.position) as last_held
    from published_source_files as files
    inner join dataset_revisions
        on
            dataset_revisions.dataset = files.dataset
            and dataset_revisions.revision = files.revision
    left join identity_aliases
        on identity_aliases.implementation_digest = files.inputs_digest
    group by all
),

lines as (
    select
        solutions.dataset,
        solutions.path,
        solutions.solution_name,
        solutions.operation_digest,
        solutions.implementation_digest,
        file_states.revision_at,
        coalesce(file_states.removed, false) as removed,
        holdings.last_held,
        dataset_revisions.position
    from solutions
    left join file_states
        on file_states.dataset = solutions.dataset and file_states.path = solutions.path
    left join holdings
        on
            holdings.dataset = solutions.dataset
            and holdings.path = solutions.path
            and holdings.implementation_digest = solutions.implementation_digest
    left join dataset_revisions
        on
            dataset_revisions.dataset = solutions.dataset
            and dataset_revisions.revision = solutions.source_revision
),

-- What the file held last is current; a file may go back to older content.
placed as (
    select
        *,
        first_value(implementation_digest) over (
            partition by dataset, path, solution_name, operation_digest
            order by
                last_held desc nulls last,
                position desc nulls last,
                implementation_digest
        ) as current_digest
    from lines
)

-- Whatever is current in a file that is still there is not superseded; a file that is gone keeps
-- nothing that was replaced elsewhere.
select
    implementation_digest,
    min(current_digest) filter (where implementation_digest <> current_digest)
        as replacement_digest,
    min(revision_at) filter (where implementation_digest <> current_digest) as superseded_at
from placed
group by implementation_digest
having
    bool_or(implementation_digest <> current_digest)
    and not coalesce(bool_or(implementation_digest = current_digest and not removed), false)
