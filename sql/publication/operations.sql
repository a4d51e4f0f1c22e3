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

positions as (
    select
        dataset,
        revision,
        row_number() over (
            partition by dataset order by revision_at nulls last, revision
        ) as position
    from dated
),

staged as (
    select
        rows.operation_digest,
        rows.name,
        rows.reference_digest,
        rows.dataset,
        positions.position,
        rows.file_index,
        rows.file_row_number
    from read_parquet($staged, file_row_number = true) as rows
    left join positions
        on positions.dataset = rows.dataset and positions.revision = rows.revision
    qualify
        row_number() over (
            partition by rows.operation_digest, rows.name, rows.reference_digest
            order by positions.position nulls last, rows.path, rows.line
        ) = 1
),

published as (
    select
        rows.operation_digest,
        rows.name,
        rows.reference_digest,
        rows.dataset,
        positions.position
    from published_operations as rows
    left join positions
        on positions.dataset = rows.dataset and positions.revision = rows.revision
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.operation_digest is not distinct from staged.operation_digest
        and published.name is not distinct from staged.name
        and published.reference_digest is not distinct from staged.reference_digest
        and (
            published.dataset is distinct from staged.dataset
            or published.position <= staged.position
            or published.position is null
            or staged.position is null
        )
order by file_index, file_row_number
