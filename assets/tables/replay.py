"""Make every publication again from the raw store, and say whether the same rows came out.

No network and no dataset folder is needed: what each ingestion listed is kept beside the raw
bytes. A publication whose rows would differ stays as it is and is named. Controlled reruns are
made again from the copies of their files; of a publication whose rows lie in a generation only
the numbers of rows are compared.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from assets.manifests.records import KEYS
from assets.tables.chain import Chain
from assets.tables.errors import WarehouseError
from assets.tables.losses import expect_whole
from assets.tables.repair import remade_tables, remake_publication
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
        WarehouseError: another process is writing for too long, or something published is lost.
    """
    outcomes: list[Replayed] = []
    with warehouse.locked():
        chain = expect_whole(warehouse)
        for record in warehouse.publications():
            if record.publication_id == GENESIS:
                continue
            outcome = _replay_one(warehouse, chain, record)
            outcomes.append(outcome)
            if on_publication is not None:
                on_publication(outcome)
    return outcomes


def _replay_one(warehouse: Warehouse, chain: Chain, record: Publication) -> Replayed:
    folder = warehouse.folder_of(record.publication_id)
    # The copies that the raw store has are those that the chain names.
    record = chain.records.get(record.publication_id) or record
    rows = sum(table.rows for table in record.tables.values())
    problem = None
    try:
        if folder.is_dir():
            before = _keys(folder)
            remake_publication(warehouse, chain, record)
            if _keys(folder) != before:
                problem = "other rows came out of the same raw bytes"
        else:
            _remake_nowhere(warehouse, record)
    except (WarehouseError, DatasetError) as error:
        problem = error.message
    return Replayed(record.publication_id, rows, problem)


def _remake_nowhere(warehouse: Warehouse, record: Publication) -> None:
    building = warehouse.building_folder(f"again-{record.publication_id}")
    staging = warehouse.building_folder(f"rows-{record.publication_id}")
    try:
        remade_tables(warehouse, record, staging, building)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(staging, ignore_errors=True)


def _keys(folder: Path) -> dict[str, set[tuple[object, ...]]]:
    keys: dict[str, set[tuple[object, ...]]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = path.name.rpartition("-")[0]
        if table in KEYS:
            columns = pq.read_table(path, columns=list(KEYS[table])).to_pydict()
            keys.setdefault(table, set()).update(zip(*columns.values(), strict=True))
    return keys
