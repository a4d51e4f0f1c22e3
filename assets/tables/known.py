"""What the warehouse already knows of a dataset, as normalization needs it."""

import json
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib import resources
from operator import itemgetter

import duckdb

from assets.manifests.normalize import (
    FileState,
    Identities,
    Known,
    KnownRevision,
    newest_trace_time,
)
from assets.manifests.rows import PARSER_VERSION
from assets.manifests.trace_files import References
from assets.tables.database import create_published_view, published_rows
from assets.tables.warehouse import Warehouse
from assets.traces.snapshot import DatasetSnapshot, load_snapshot


def known_for(warehouse: Warehouse, snapshot: DatasetSnapshot) -> Known:
    """What was published of the snapshot's dataset, as reading this snapshot needs it."""
    previous = _previous(warehouse, snapshot)
    if all(record.dataset != snapshot.dataset for record in warehouse.publications()):
        return Known(previous=previous)
    at = _time_of(warehouse, snapshot)
    known = known_of(warehouse, snapshot.dataset, snapshot.revision, at)
    return replace(known, previous=previous)


def _previous(warehouse: Warehouse, snapshot: DatasetSnapshot) -> DatasetSnapshot | None:
    """The revision before this one: by commit time, else the one that was listed last."""
    others = [other for other in _others(warehouse, snapshot) if other.authors == snapshot.authors]
    if snapshot.revision_at is None:
        return max(others, key=partial(_listed_at, warehouse), default=None)
    dated = [(time, other) for other in others if (time := other.revision_at) is not None]
    earlier = [item for item in dated if item[0] < snapshot.revision_at]
    return max(earlier, key=itemgetter(0))[1] if earlier else None


def _listed_at(warehouse: Warehouse, snapshot: DatasetSnapshot) -> int:
    return warehouse.snapshot_file(snapshot.snapshot_id).stat().st_mtime_ns


def _others(warehouse: Warehouse, snapshot: DatasetSnapshot) -> list[DatasetSnapshot]:
    """Published snapshots of the same dataset at other revisions."""
    published = {record.snapshot_id for record in warehouse.publications()}
    return [
        other
        for path in sorted(warehouse.snapshots.glob("*.json"))
        if (other := load_snapshot(path)).dataset == snapshot.dataset
        and other.revision != snapshot.revision
        and (warehouse.until is None or other.snapshot_id in published)
    ]


def later_snapshots(warehouse: Warehouse, snapshot: DatasetSnapshot) -> list[DatasetSnapshot]:
    """Ingested snapshots of the same dataset at other, later revisions."""
    at = _time_of(warehouse, snapshot)
    times = _revision_times(warehouse, snapshot.dataset)
    return [
        other
        for other in _others(warehouse, snapshot)
        if other.revision in times and _is_later(times[other.revision], at)
    ]


def _is_later(time: datetime | None, than: datetime | None) -> bool:
    """Whether a revision is later than another; what nothing dates comes last."""
    return than is not None and (time is None or time > than)


def _revision_times(warehouse: Warehouse, dataset: str) -> dict[str, datetime | None]:
    """The time of each published revision of a dataset."""
    with warehouse.connect() as connection:
        rows = published_rows(connection, warehouse, "revisions").filter(
            duckdb.ColumnExpression("dataset") == duckdb.ConstantExpression(dataset)
        )
        times = rows.aggregate("revision, min(revision_at)", "revision").fetchall()
    return dict(times)


def _time_of(warehouse: Warehouse, snapshot: DatasetSnapshot) -> datetime | None:
    if snapshot.revision_at is not None:
        return snapshot.revision_at.replace(tzinfo=None)
    if not has_other_revision(warehouse, snapshot.dataset, snapshot.revision):
        # Nothing to be compared with, so the traces need not be looked through.
        return None
    return newest_trace_time(snapshot, warehouse.store)


def known_of(
    warehouse: Warehouse, dataset: str, revision: str, revision_at: datetime | None
) -> Known:
    """The states of a dataset's files and the revisions under which its solutions are known.

    `revision` is about to be read and `revision_at` its time, None where nothing dates it: a
    solution that is known only from a later revision gets the identity of this one.
    """
    at = {
        "dataset": dataset,
        "revision": revision,
        "revision_at": revision_at.replace(tzinfo=None) if revision_at else None,
    }
    with warehouse.connect() as connection:
        for table in ("source_files", "implementations", "revisions"):
            create_published_view(connection, warehouse, table)
        files = connection.sql(
            _query("known_files"), params={**at, "parser_version": PARSER_VERSION}
        ).fetchall()
        identities = connection.sql(_query("known_identities"), params=at).fetchall()
    known: dict[str, KnownRevision] = {}
    later: dict[str, KnownRevision] = {}
    for content, position, known_revision, is_later in identities:
        (later if is_later else known)[content] = KnownRevision(position, known_revision)
    return Known(
        identities=Identities(known, later),
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
        revisions = published_rows(connection, warehouse, "revisions")
        found = revisions.filter(
            (duckdb.ColumnExpression("dataset") == duckdb.ConstantExpression(dataset))
            & (duckdb.ColumnExpression("revision") != duckdb.ConstantExpression(revision))
        )
        return bool(found.limit(1).fetchall())
