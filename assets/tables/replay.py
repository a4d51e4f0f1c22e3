"""Make every publication again from the raw store, and say whether the same rows came out.

No network and no dataset folder is needed: what each ingestion listed is kept beside the raw
bytes. A publication whose rows would differ stays as it is and is named. Controlled reruns are
made again from the copies of their files. Rows that lie in a generation stay as they are: its
files are compared with what was written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from assets.manifests.records import KEYS
from assets.tables.chain import Chain
from assets.tables.errors import WarehouseError
from assets.tables.losses import expect_whole, in_generation
from assets.tables.published_copies import files_of, is_whole
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
    if record.publication_id in in_generation(warehouse, chain):
        return Replayed(record.publication_id, rows, _problem_of_generation(warehouse))
    before = _keys(folder)
    try:
        remake_publication(warehouse, chain, record)
    except (WarehouseError, DatasetError) as error:
        return Replayed(record.publication_id, rows, error.message)
    problem = None if _keys(folder) == before else "other rows came out of the same raw bytes"
    return Replayed(record.publication_id, rows, problem)


def _problem_of_generation(warehouse: Warehouse) -> str | None:
    generation = warehouse.generation()
    if generation is None:
        return None
    folder = warehouse.folder_of_generation(generation.number)
    damaged = [
        file.name for file in files_of(generation.tables) if not is_whole(folder / file.name, file)
    ]
    if not damaged:
        return None
    return f"{folder / damaged[0]} is damaged; run `kernelindex doctor --repair`"


def _keys(folder: Path) -> dict[str, set[tuple[object, ...]]]:
    keys: dict[str, set[tuple[object, ...]]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = path.name.rpartition("-")[0]
        if table in KEYS:
            columns = pq.read_table(path, columns=list(KEYS[table])).to_pydict()
            keys.setdefault(table, set()).update(zip(*columns.values(), strict=True))
    return keys
