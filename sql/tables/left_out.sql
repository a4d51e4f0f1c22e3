-- left_out: one row per publication of which the index lacks rows
-- key: publication_id
-- column publication_id: the publication
-- column published_at: when it was published (UTC)
-- column kind: ingest, correction or rerun
-- column dataset: dataset that it is of, where it is of one
-- column revision: dataset revision, where there is one
-- column set_aside_at: since when the index is built without it (UTC); null for a publication of
--     which only those rows are left out that name what one that is set aside brought
-- column statement: file under sql/ that breaks with it and not without it
-- column error: what that statement says
-- column left_out_runs: how many of its runs are in no table
-- column left_out_rows: how many rows of all kinds
-- note: Nothing is lost: the rows stay published, and `kernelindex doctor --readmit` puts a
--     publication back once the statement is mended. Empty where nothing was ever set aside.
-- warn complete: left_out_rows = 0
select
    publication_id,
    published_at,
    kind,
    dataset,
    revision,
    set_aside_at,
    statement,
    error,
    left_out_runs,
    left_out_rows
from published_left_out
