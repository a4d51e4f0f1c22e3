"""Dagster resources: what assets are handed at run time."""

from datetime import datetime
from pathlib import Path

import dagster as dg

from assets.manifests.normalize import Known, newest_trace_time
from assets.tables.errors import WarehouseError
from assets.tables.known import has_other_revision, known_of
from assets.tables.warehouse import Warehouse
from assets.traces.snapshot import DatasetSnapshot, load_snapshot


class OpenWarehouse(Warehouse):
    """A warehouse that also answers what it knows of a dataset."""

    def known(self, snapshot: DatasetSnapshot) -> Known:
        """What was published of the snapshot's dataset."""
        return known_of(self, snapshot.dataset, self._time_of(snapshot))

    def later_snapshots(self, snapshot: DatasetSnapshot) -> list[DatasetSnapshot]:
        """Ingested snapshots of the same dataset at other, later revisions."""
        at = self._time_of(snapshot)
        others = [
            other
            for path in sorted(self.snapshots.glob("*.json"))
            if (other := load_snapshot(path)).dataset == snapshot.dataset
            and other.revision != snapshot.revision
        ]
        return [
            other
            for other in others
            if at is not None and (time := self._time_of(other)) is not None and time > at
        ]

    def _time_of(self, snapshot: DatasetSnapshot) -> datetime | None:
        if snapshot.revision_at is not None:
            return snapshot.revision_at.replace(tzinfo=None)
        if not has_other_revision(self, snapshot.dataset, snapshot.revision):
            # Nothing to be compared with, so the traces need not be looked through.
            return None
        return newest_trace_time(snapshot, self.store)


class WarehouseResource(dg.ConfigurableResource[OpenWarehouse]):
    """The warehouse folder of this deployment."""

    root: str

    def open(self) -> OpenWarehouse:
        """The warehouse, ready for use; a run fails at once where it cannot be written."""
        warehouse = OpenWarehouse(Path(self.root))
        try:
            warehouse.prepare()
        except WarehouseError as error:
            raise dg.Failure(error.message, allow_retries=False) from error
        return warehouse
