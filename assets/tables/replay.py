"""Make every publication again from the raw store, and say whether the same rows came out.

No network and no dataset folder is needed: what each ingestion listed is kept beside the raw
bytes. A publication whose rows would differ stays as it is and is named.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from assets.manifests.records import KEYS
from assets.tables.errors import WarehouseError
from assets.tables.repair import remake_publication
from assets.tables.warehouse import GENESIS, Publication, Warehouse
from assets.traces.errors import DatasetError


@dataclass(frozen=True)
class Replayed:
    """One publication: how many rows are the same again, or why it was left alone."""

    publication_id: str
    rows: int
    problem: str | None


def replay(
    warehouse: Warehouse, on_publication: Callable[[Replayed], None] | None = None
) -> list[Replayed]:
    """Make the files of every publication again, oldest first.

    Raises:
        WarehouseError: another process is writing for too long.
    """
    outcomes: list[Replayed] = []
    with warehouse.locked():
        for record in warehouse.publications():
            if record.publication_id == GENESIS:
                continue
            outcome = _replay_one(warehouse, record)
            outcomes.append(outcome)
            if on_publication is not None:
                on_publication(outcome)
    return outcomes


def _replay_one(warehouse: Warehouse, record: Publication) -> Replayed:
    folder = warehouse.folder_of(record.publication_id)
    rows = sum(table.rows for table in record.tables.values())
    if not folder.is_dir():
        return Replayed(record.publication_id, rows, "compacted: its own files were removed")
    before = _keys(folder)
    try:
        remake_publication(warehouse, record)
    except (WarehouseError, DatasetError) as error:
        return Replayed(record.publication_id, rows, error.message)
    problem = None if _keys(folder) == before else "other rows came out of the same raw bytes"
    return Replayed(record.publication_id, rows, problem)


def _keys(folder: Path) -> dict[str, set[tuple[object, ...]]]:
    keys: dict[str, set[tuple[object, ...]]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = path.name.rpartition("-")[0]
        if table in KEYS:
            columns = pq.read_table(path, columns=list(KEYS[table])).to_pydict()
            keys.setdefault(table, set()).update(zip(*columns.values(), strict=True))
    return keys
