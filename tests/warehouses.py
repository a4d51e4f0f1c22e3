"""Warehouses made as the ingest job makes them, without Dagster."""

import shutil
from pathlib import Path

from assets.leaderboards.build import build_database
from assets.manifests.normalize import normalize
from assets.tables.known import known_for
from assets.tables.publication import PublicationRequest, publish
from assets.tables.warehouse import Publication, Warehouse
from assets.traces.pull import pull
from assets.traces.snapshot import save_snapshot


def ingest_into(
    root: Path,
    *authors: str,
    dataset: str = "sample",
    revision: str | None = None,
    name: str | None = None,
    build: bool = True,
) -> Publication | None:
    """Ingest a dataset (of some authors only, if any are named) into a warehouse folder."""
    warehouse = Warehouse(root)
    warehouse.prepare()
    snapshot = pull(
        dataset, revision=revision, authors=authors or None, store=warehouse.store, name=name
    )
    save_snapshot(snapshot, warehouse.snapshot_file(snapshot.snapshot_id))
    staging = warehouse.staging("test")
    try:
        normalize(snapshot, warehouse.store, staging, known_for(warehouse, snapshot), processes=1)
        record = publish(
            warehouse,
            staging,
            PublicationRequest(
                kind="ingest",
                dataset=snapshot.dataset,
                revision=snapshot.revision,
                snapshot_id=snapshot.snapshot_id,
            ),
        )
    finally:
        shutil.rmtree(staging)
    if build:
        build_database(warehouse)
    return record


def ingest_by_author(root: Path) -> list[Publication]:
    """Three publications of the sample: two authors, then everybody."""
    steps = (("baseline",), ("kernelindex-torch",), ())
    records = [ingest_into(root, *authors, build=authors == ()) for authors in steps]
    return [record for record in records if record is not None]
