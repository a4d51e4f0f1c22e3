-- Which staged rows of the table operations are new: once per key, and in no publication yet from this
-- revision or an earlier one, so that it is known from when on there is what they say.
-- Reads the views published_operations, published_revisions and staged_revisions. Parameter: staged (list of
-- Parquet files).
-- key: operation_digest, name, reference_digest
-- column file_index: 0-based place of the file among the staged ones
-- column file_row_number: 0-based row of that file
with dated as (
    select
        dataset,
        revision,
        min(revision_at) as revision_at
    from (
        select dataset, revision, revision_at
        from published_revisions
        union all
        select dataset, revision, revision_at
        from staged_revisions
    )
    group by dataset, revision
),

staged as (
    select
        rows.operation_digest,
        rows.name,
        rows.reference_digest,
        rows.dataset,
        dated.revision_at,
        rows.file_index,
        rows.file_row_number
    from read_parquet($staged, file_row_number = true) as rows
    left join dated on dated.dataset = rows.dataset and dated.revision = rows.revision
    qualify
        row_number() over (
            partition by rows.operation_digest, rows.name, rows.reference_digest
            order by dated.revision_at nulls last, rows.path, rows.line
        ) = 1
),

published as (
    select
        rows.operation_digest,
        rows.name,
        rows.reference_digest,
        rows.dataset,
        dated.revision_at
    from published_operations as rows
    left join dated on dated.dataset = rows.dataset and dated.revision = rows.revision
)

select
    file_index,
    file_row_number
from staged
anti join published
    on
        published.operation_digest is not distinct from staged.operation_digest
        and published.name is not distinct from staged.name
        and published.reference_digest is not distinct from staged.reference_digest
        and (
            published.dataset is distinct from staged.dataset
            or staged.revision_at is null
            or published.revision_at <= staged.revision_at
        )
order by file_index, file_row_number
