-- Which staged rows of the table implementations are new: once per key, and in no publication yet from this
-- revision or an earlier one, so that it is known from when on there is what they say.
-- Reads the views published_implementations, published_revisions and staged_revisions. Parameter: staged (list of
-- Parquet files).
-- key: implementation_digest, dataset, path, document_digest
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
        rows.implementation_digest,
        rows.dataset,
        rows.path,
        rows.document_digest,
        positions.position,
        rows.file_index,
        rows.file_row_number
    from read_parquet($staged, file_row_number = true) as rows
    left join positions
        on positions.dataset = rows.dataset and positions.revision = rows.revision
    qualify
        row_number() over (
            partition by rows.implementation_digest, rows.dataset, rows.path, rows.document_digest
            order by positions.position nulls last, rows.path, rows.line
        ) = 1
),

published as (
    select
        rows.implementation_digest,
        rows.dataset,
        rows.path,
        rows.document_digest,
        positions.position
    from published_implementations as rows
    left join positions
        on positions.dataset = rows.dataset and positions.revision = rows.revision
)

select
    staged.file_index,
    staged.file_row_number
from staged
anti join published
    on
        published.implementation_digest is not distinct from staged.implementation_digest
        and published.dataset is not distinct from staged.dataset
        and published.path is not distinct from staged.path
        and published.document_digest is not distinct from staged.document_digest
        and (
            published.dataset is distinct from staged.dataset
            or published.position <= staged.position
            or published.position is null
            or staged.position is null
        )
order by file_index, file_row_number
