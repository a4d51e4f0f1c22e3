"""Dagster resources: what assets are handed at run time."""

from pathlib import Path

import dagster as dg
import pyarrow as pa

from assets.manifests.normalize import Known
from assets.tables.errors import WarehouseError
from assets.tables.known import known_for, later_snapshots
from assets.tables.settled import settled_counts
from assets.tables.warehouse import Warehouse
from assets.traces.snapshot import DatasetSnapshot

# Arrow's own allocator asks Linux for huge pages, and copying a hundred megabytes of logs then
# waits for them twice as long as the copying takes.
pa.set_memory_pool(pa.system_memory_pool())


class OpenWarehouse(Warehouse):
    """A warehouse that also answers what it knows of a dataset."""

    def known(self, snapshot: DatasetSnapshot) -> Known:
        """What was published of the snapshot's dataset."""
        settled = settled_counts(self, snapshot)
        return known_for(self, snapshot) if settled is None else Known(settled=settled)

    def later_snapshots(self, snapshot: DatasetSnapshot) -> list[DatasetSnapshot]:
        """Ingested snapshots of the same dataset at other, later revisions."""
        return later_snapshots(self, snapshot)


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
