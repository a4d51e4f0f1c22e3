"""Put right what an examination found, from raw bytes where published files are damaged.

Damaged publications are made again by replaying the list of files of their ingestion over the raw
store, against what was published before them. What comes out is only taken when it has as many
rows as the record says: a repair never invents. What cannot be repaired is said.
"""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from pydantic import ValidationError

from assets.manifests.normalize import normalize, normalize_again
from assets.tables.compaction import write_generation
from assets.tables.contracts import check_file
from assets.tables.corrections import (
    CORRECTION,
    CORRECTION_TABLE,
    kinds_of,
    parse_corrections,
    stage_corrections,
)
from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault, Finding
from assets.tables.integrity import leftovers
from assets.tables.known import known_for, later_snapshots
from assets.tables.publication import write_tables
from assets.tables.time_travel import WarehouseAsOf
from assets.tables.warehouse import (
    GENERATION_RECORD,
    GENESIS,
    PUBLICATION_RECORD,
    Generation,
    Publication,
    PublishedTable,
    Warehouse,
    published_file,
)
from assets.traces.errors import DatasetError
from assets.traces.snapshot import write_atomically

REBUILT_BY_BUILD = frozenset({Fault.NO_DATABASE, Fault.OLD_DATABASE, Fault.WRONG_TABLE})
"""Faults that building the database anew repairs."""

_IN_FILES = frozenset(
    {
        Fault.NO_RECORD,
        Fault.MISSING_PUBLICATION,
        Fault.MISSING_FILE,
        Fault.DAMAGED_FILE,
        Fault.OTHER_SCHEMA,
        Fault.ROW_COUNT,
    }
)


@dataclass
class Repairs:
    """What was repaired, and what could not be, with the reason."""

    done: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)


def repair_files(warehouse: Warehouse, findings: Iterable[Finding]) -> Repairs:
    """Remove leftovers and make damaged publications and generations again.

    Raises:
        WarehouseError: another process is writing for too long.
    """
    repairs = Repairs()
    found = [finding for finding in findings if finding.fault in _IN_FILES]
    for path in leftovers(warehouse):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        repairs.done.append(f"{path}: removed, it was never published")
    with warehouse.locked():
        damaged = sorted({item.publication_id for item in found if item.publication_id})
        for publication_id in damaged:
            _attempt(repairs, publication_id, partial(_remake, warehouse, publication_id))
        for number in sorted({item.generation for item in found if item.generation}):
            remake = partial(_remake_generation, warehouse, number)
            _attempt(repairs, f"generation {number}", remake)
    return repairs


def _attempt(repairs: Repairs, what: str, repair: Callable[[], str]) -> None:
    try:
        repairs.done.append(f"{what}: {repair()}")
    except (WarehouseError, DatasetError) as error:
        repairs.impossible.append(f"{what}: {error.message}")
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        repairs.impossible.append(f"{what}: an earlier publication cannot be read ({first_line})")


def _remake(warehouse: Warehouse, publication_id: str) -> str:
    if publication_id == GENESIS:
        return _remake_genesis(warehouse)
    try:
        record = warehouse.record_of(publication_id)
        if record.publication_id != publication_id:
            raise WarehouseError("the record is another publication's")
    except WarehouseError:
        record = _record_from_files(warehouse, publication_id)
        (warehouse.folder_of(publication_id) / PUBLICATION_RECORD).write_text(
            record.model_dump_json(indent=2) + "\n"
        )
        return "its record was made again from its files, which are whole"
    remake_publication(warehouse, record)
    return "its damaged files were made again from raw bytes, with the rows that it had"


def _remake_genesis(warehouse: Warehouse) -> str:
    shutil.rmtree(warehouse.folder_of(GENESIS), ignore_errors=True)
    warehouse.prepare_genesis()
    return "the empty first publication was made again"


def _record_from_files(warehouse: Warehouse, publication_id: str) -> Publication:
    """The record of a publication whose files say all of it.

    Raises:
        WarehouseError: files that cannot be read, or that do not say where they are from.
    """
    folder = warehouse.folder_of(publication_id)
    tables: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = path.name.rpartition("-")[0]
        check_file(table, path)
        try:
            pq.read_table(path)
        except (OSError, ValueError) as error:
            raise WarehouseError(
                f"{path}: neither the record nor this file can be read ({error}); move the "
                "directory away and ingest its dataset again"
            ) from error
        tables.setdefault(table, []).append(path)
    if not tables:
        raise WarehouseError(f"{folder}: has no files; remove it and ingest its dataset again")
    at = datetime.strptime(publication_id.partition("-")[2], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    record = Publication(
        publication_id=publication_id,
        published_at=at,
        kind="ingest",
        tables={
            table: PublishedTable(files=tuple(published_file(path) for path in paths))
            for table, paths in tables.items()
        },
    )
    return record.model_copy(update=_source(tables))


def _source(tables: dict[str, list[Path]]) -> dict[str, str | None]:
    if set(tables) == {CORRECTION_TABLE}:
        return {"kind": CORRECTION}
    if "revisions" not in tables:
        paths = next(iter(tables.values()))
        [row] = pq.read_table(paths[0], columns=["dataset", "revision"]).slice(0, 1).to_pylist()
        return {"dataset": row["dataset"], "revision": row["revision"]}
    [row] = pq.read_table(tables["revisions"][0]).slice(0, 1).to_pylist()
    return {name: row[name] for name in ("dataset", "revision", "snapshot_id")}


def remake_publication(warehouse: Warehouse, record: Publication) -> None:
    """Write a publication's files again in their place, file by file, each by one rename."""
    building = warehouse.building_folder(f"again-{record.publication_id}")
    staging = warehouse.building_folder(f"rows-{record.publication_id}")
    try:
        tables = remade_tables(warehouse, record, staging, building)
        folder = warehouse.folder_of(record.publication_id)
        for table in tables.values():
            for file in table.files:
                (building / file.name).replace(folder / file.name)
        listed = {file.name for table in tables.values() for file in table.files}
        for path in folder.glob("*.parquet"):
            if path.name not in listed:
                path.unlink()
        renewed = record.model_copy(update={"tables": tables})
        write_atomically(
            folder / PUBLICATION_RECORD, (renewed.model_dump_json(indent=2) + "\n").encode()
        )
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(staging, ignore_errors=True)


def remade_tables(
    warehouse: Warehouse, record: Publication, staging: Path, building: Path
) -> dict[str, PublishedTable]:
    """Make a publication's files again under `building`, from raw bytes.

    Raises:
        WarehouseError: other rows come out than were published, or nothing is kept to replay.
        DatasetError: raw bytes that are gone or damaged.
    """
    before = WarehouseAsOf(warehouse, _previous(warehouse, record), "repair")
    shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    _replay(warehouse, before, record, staging)
    tables = write_tables(before, staging, building)
    expected = {name: table.rows for name, table in record.tables.items() if table.rows}
    actual = {name: table.rows for name, table in tables.items() if table.rows}
    if actual != expected:
        differing = ", ".join(
            f"{name} {actual.get(name, 0)} rows, not {expected.get(name, 0)}"
            for name in sorted(expected.keys() | actual.keys())
            if expected.get(name, 0) != actual.get(name, 0)
        )
        raise WarehouseError(
            f"replaying its raw bytes gives other rows ({differing}), so it was made by another "
            "version; move its directory away and ingest its dataset again"
        )
    return tables


def _previous(warehouse: Warehouse, record: Publication) -> str:
    folders = [*warehouse.publication_folders()]
    generation = warehouse.generation() if warehouse.generation_numbers() else None
    if generation is not None:
        folders += [item.publication_id for item in generation.publications]
    return max(folder for folder in folders if folder < record.publication_id)


def _replay(warehouse: Warehouse, before: Warehouse, record: Publication, staging: Path) -> None:
    if record.snapshot_id is None:
        raise WarehouseError(
            f"a publication of kind {record.kind} keeps no raw bytes to make it again from"
        )
    if record.kind == CORRECTION:
        data = warehouse.store.get(record.snapshot_id)
        located = parse_corrections(data, record.publication_id)
        corrections = [item.correction for item in located]
        kinds = kinds_of(before, (correction.target for correction in corrections))
        stage_corrections(corrections, kinds, staging, record.snapshot_id)
        return
    snapshot = warehouse.snapshot_of(record.snapshot_id)
    if snapshot is None:
        raise WarehouseError(
            f"{warehouse.snapshot_file(record.snapshot_id)}: the list of files of this ingestion "
            f"is gone; ingest {record.dataset} at {record.revision} again"
        )
    known = known_for(before, snapshot)
    outcome = normalize(snapshot, warehouse.store, staging, known)
    if outcome.moved:
        later = later_snapshots(before, snapshot)
        normalize_again(later, warehouse.store, staging, known, outcome.moved)


def _remake_generation(warehouse: Warehouse, number: int) -> str:
    """Make a generation again from the directories that it replaced."""
    damaged = warehouse.folder_of_generation(number)
    aside = warehouse.building_folder(f"removed-generation-{number:08d}")
    shutil.rmtree(aside, ignore_errors=True)
    wanted = _wanted(damaged)
    damaged.rename(aside)
    try:
        present = {record.publication_id for record in warehouse.publications()}
        if wanted is None or not wanted <= present:
            missing = "its record" if wanted is None else ", ".join(sorted(wanted - present)[:3])
            raise WarehouseError(
                f"{damaged}: {missing} is gone, and so is what it was compacted from; ingest the "
                "datasets again into a new warehouse"
            )
        write_generation(warehouse, number)
    except BaseException:
        if not damaged.exists():
            aside.rename(damaged)
        raise
    shutil.rmtree(aside)
    return "made again from the publications that it holds"


def _wanted(folder: Path) -> set[str] | None:
    """The publications that a generation holds: by its record, else by its rows."""
    try:
        record = Generation.model_validate_json((folder / GENERATION_RECORD).read_bytes())
        return {item.publication_id for item in record.publications}
    except (OSError, ValidationError):
        pass  # the rows say it too, where they can be read
    found: set[str] = set()
    for path in sorted(folder.glob("*.parquet")):
        try:
            column = pq.read_table(path, columns=["publication_id"])["publication_id"]
        except (OSError, ValueError):
            return None
        found |= set(column.unique().to_pylist())
    return found or None
