"""What the warehouse already knows of a dataset, as normalization needs it."""

import json
from datetime import datetime
from importlib import resources

import duckdb

from assets.manifests.normalize import FileState, Known
from assets.manifests.rows import PARSER_VERSION
from assets.manifests.trace_files import References
from assets.tables.database import create_published_view
from assets.tables.warehouse import Warehouse


def known_of(warehouse: Warehouse, dataset: str, revision_at: datetime | None) -> Known:
    """The states of a dataset's files and the revisions under which its solutions are known.

    `revision_at` is the time of the revision that is about to be read, None where nothing dates
    it: a solution that is known only from a later revision gets the identity of this one.
    """
    with warehouse.connect() as connection:
        create_published_view(connection, warehouse, "source_files")
        files = connection.sql(
            _query("known_files"),
            params={
                "dataset": dataset,
                "parser_version": PARSER_VERSION,
            },
        ).fetchall()
        identities = connection.sql(
            _query("known_identities"),
            params={
                "implementations": warehouse.files("implementations"),
                "revisions": warehouse.files("revisions"),
                "dataset": dataset,
            },
        ).fetchall()
    naive = revision_at.replace(tzinfo=None) if revision_at else None
    earlier = {
        (path, content): revision
        for path, content, revision, known_at in identities
        if naive is None or known_at is None or known_at <= naive
    }
    return Known(
        identities=earlier,
        later_identities=frozenset((path, content) for path, content, *_ in identities)
        - earlier.keys(),
        files={
            (path, digest): FileState(
                references=References.from_json(references),
                inputs_digest=inputs,
                documents=documents,
                workload_rows=workload_rows,
                quarantined=quarantined,
                reasons=json.loads(reasons),
                newest_trace_at=newest_trace_at,
            )
            for (
                path,
                digest,
                references,
                inputs,
                documents,
                workload_rows,
                quarantined,
                reasons,
                newest_trace_at,
            ) in files
        },
    )


def _query(name: str) -> str:
    return resources.files("sql").joinpath("publication", f"{name}.sql").read_text()


def has_other_revision(warehouse: Warehouse, dataset: str, revision: str) -> bool:
    """Whether another revision of the dataset was ingested."""
    with warehouse.connect() as connection:
        revisions = connection.read_parquet(warehouse.files("revisions"))
        found = revisions.filter(
            (duckdb.ColumnExpression("dataset") == duckdb.ConstantExpression(dataset))
            & (duckdb.ColumnExpression("revision") != duckdb.ConstantExpression(revision))
        )
        return bool(found.limit(1).fetchall())
