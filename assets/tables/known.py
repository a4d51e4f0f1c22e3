"""What the warehouse already knows of a dataset, as normalization needs it."""

import json
from datetime import datetime
from importlib import resources

from assets.manifests.normalize import FileState, Known
from assets.manifests.rows import PARSER_VERSION
from assets.manifests.trace_files import References
from assets.tables.database import create_published_view
from assets.tables.warehouse import Warehouse


def known_of(warehouse: Warehouse, dataset: str, revision_at: datetime | None) -> Known:
    """The states of a dataset's files and the revisions under which its solutions are known.

    `revision_at` is the time of the revision that is about to be read: a solution that is known
    only from a later one gets the identity of this one.
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
    return Known(
        identities={
            (path, content): revision
            for path, content, revision, known_at in identities
            if naive is None or known_at is None or known_at <= naive
        },
        files={
            path: FileState(
                file_digest=digest,
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
