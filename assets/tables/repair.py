"""Put right what an examination found, from raw bytes where published files are damaged.

Damaged and lost publications are made again by replaying the list of files of their ingestion over
the raw store, against what was published before them, or from the copies that the raw store has of
them. What comes out is only taken when it has as many rows as the record says: a repair never
invents. A generation is made again from its publications. What cannot be repaired is said, and
stays an error until a person accepts the loss.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from assets.manifests.normalize import normalize, normalize_again
from assets.tables.chain import Chain, Event, add_links, link, read_chain, rebuild
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
from assets.tables.failpoints import passing
from assets.tables.findings import Fault, Finding
from assets.tables.integrity import leftovers
from assets.tables.known import known_for, later_snapshots
from assets.tables.losses import catch_up, readable_generation, seen_chain
from assets.tables.publication import write_tables
from assets.tables.published_copies import (
    copy_digests,
    files_of,
    has_content,
    is_whole,
    keep_copies,
    needs_copies,
    restore_copies,
    rows_of_generation,
)
from assets.tables.raw_checks import put_damaged_aside
from assets.tables.time_travel import WarehouseAsOf
from assets.tables.warehouse import (
    GENESIS,
    PUBLICATION_RECORD,
    Generation,
    Publication,
    PublishedTable,
    Warehouse,
    flush_to_disk,
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
        Fault.MISSING_GENERATION,
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


class _Before(WarehouseAsOf):
    """What was published before a publication; only directories of their own where asked for."""

    def __init__(self, warehouse: Warehouse, sequence: int, *, compacted: bool) -> None:
        super().__init__(warehouse, f"{sequence - 1:08d}-99999999T999999Z", "repair")
        self._compacted = compacted

    def generation(self) -> Generation | None:
        """The newest generation, unless it is left out."""
        return super().generation() if self._compacted else None


def repair_files(warehouse: Warehouse, findings: Iterable[Finding]) -> Repairs:
    """Remove leftovers and make damaged and lost publications and generations again.

    Raises:
        WarehouseError: another process is writing for too long.
    """
    repairs = Repairs()
    found = list(findings)
    newer = [finding for finding in found if finding.fault is Fault.OTHER_VERSION]
    if newer:
        # What is whole to another version may look damaged to this one.
        repairs.impossible += [f"{finding.where}: {finding.message}" for finding in newer]
        return repairs
    in_files = [finding for finding in found if finding.fault in _IN_FILES]
    for path in leftovers(warehouse):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        repairs.done.append(f"{path}: removed, it was never published")
    with warehouse.locked():
        if any(finding.fault is Fault.DAMAGED_CHAIN for finding in found):
            _attempt(repairs, "the chain", partial(_rebuild_chain, warehouse))
        damaged = sorted({item.publication_id for item in in_files if item.publication_id})
        if GENESIS in damaged:
            _attempt(repairs, GENESIS, partial(_remake_genesis, warehouse))
        numbers = {item.generation for item in in_files if item.generation is not None}
        # Publications come after what was compacted, which all of them build on.
        for number in sorted(numbers):
            remake = partial(_remake_generation, warehouse, number)
            _attempt(repairs, f"generation {number}", remake)
        for publication_id in damaged:
            if publication_id != GENESIS:
                _attempt(repairs, publication_id, partial(_remake, warehouse, publication_id))
        if any(f.fault in (Fault.DAMAGED_RAW, Fault.MISSING_SNAPSHOT) for f in found):
            repairs.done += put_damaged_aside(warehouse)
        if any(finding.fault in (Fault.MISSING_RAW, Fault.DAMAGED_RAW) for finding in found):
            _attempt(repairs, "copies of publications", partial(_keep_copies, warehouse))
    return repairs


def _attempt(repairs: Repairs, what: str, repair: Callable[[], str | None]) -> None:
    try:
        done = repair()
    except (WarehouseError, DatasetError) as error:
        repairs.impossible.append(f"{what}: {error.message}")
    except (duckdb.Error, pa.ArrowException) as error:
        first_line = str(error).splitlines()[0]
        repairs.impossible.append(f"{what}: an earlier publication cannot be read ({first_line})")
    except OSError as error:
        repairs.impossible.append(f"{what}: {error.filename or 'the disk'}: {error.strerror}")
    else:
        if done is not None:
            repairs.done.append(f"{what}: {done}")


def _rebuild_chain(warehouse: Warehouse) -> str:
    chain = seen_chain(warehouse)
    chain.links = read_chain(warehouse).links
    if chain.problems:
        rebuild(warehouse, chain)
    catch_up(warehouse)
    return "written anew from what could be read of it, the publications and the database"


def _keep_copies(warehouse: Warehouse) -> str | None:
    kept = 0
    stored = set(warehouse.store.digests())
    for record in catch_up(warehouse).records.values():
        if record is not None and needs_copies(record):
            keep_copies(warehouse, record, warehouse.folder_of(record.publication_id))
            kept += 1
    new = set(warehouse.store.digests()) - stored
    return f"{len(new)} files put into the raw store again" if kept and new else None


def _remake_genesis(warehouse: Warehouse) -> str:
    folder = warehouse.folder_of(GENESIS)
    if folder.is_symlink() or folder.exists():
        warehouse.put_aside(folder)
    warehouse.prepare_genesis()
    return "the empty first publication was made again"


def _remake(warehouse: Warehouse, publication_id: str) -> str | None:
    folder = warehouse.folder_of(publication_id)
    chain = seen_chain(warehouse)
    record = chain.records.get(publication_id)
    if record is None and publication_id in chain.records and folder.is_dir():
        record = _record_from_files(warehouse, publication_id)
        _write_record(warehouse, folder, record)
        catch_up(warehouse)
        return "its record was made again from its files, which are whole"
    if record is None and publication_id not in chain.records:
        aside = warehouse.put_aside(folder)
        return f"nothing says that it was ever published here; moved to {aside}"
    if record is None:
        raise WarehouseError("only its name is known, nothing is kept to make it again from")
    chain = catch_up(warehouse)
    return _restore(warehouse, chain, record, compacted=True)


def _restore(
    warehouse: Warehouse, chain: Chain, record: Publication, *, compacted: bool
) -> str | None:
    """Make a publication's directory what it was; None where it is already."""
    folder = warehouse.folder_of(record.publication_id)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        linked = [file for file in files_of(record.tables) if has_content(folder / file.name, file)]
        content = {file.name: (folder / file.name).read_bytes() for file in linked}
        warehouse.put_aside(folder)
        folder.mkdir()
        for name, data in content.items():
            write_atomically(folder / name, data)
    elif not folder.exists():
        _remake_whole(warehouse, chain, record, compacted=compacted)
        return "its directory was made again, with the rows that it had"
    damaged = [file for file in files_of(record.tables) if not is_whole(folder / file.name, file)]
    for file in damaged:
        if has_content(folder / file.name, file):
            write_atomically(folder / file.name, (folder / file.name).read_bytes())
    if all(is_whole(folder / file.name, file) for file in damaged):
        if not damaged and _own_record(warehouse, record) == record:
            return None
        _write_record(warehouse, folder, record)
        return "its record was made again, its files are whole"
    _remake_in_place(warehouse, chain, record, compacted=compacted)
    return "its damaged files were made again from raw bytes, with the rows that it had"


def _own_record(warehouse: Warehouse, record: Publication) -> Publication | None:
    path = warehouse.folder_of(record.publication_id) / PUBLICATION_RECORD
    try:
        return None if path.is_symlink() else warehouse.record_of(record.publication_id)
    except WarehouseError:
        return None


def _write_record(warehouse: Warehouse, folder: Path, record: Publication) -> None:
    path = folder / PUBLICATION_RECORD
    if path.is_dir() and not path.is_symlink():
        warehouse.put_aside(path)
    write_atomically(path, (record.model_dump_json(indent=2) + "\n").encode())


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


def remake_publication(warehouse: Warehouse, chain: Chain, record: Publication) -> None:
    """Write a publication's files again in their place, file by file, each by one rename.

    Raises:
        WarehouseError, DatasetError: as `remade_tables`; nothing was changed.
    """
    _remake_in_place(warehouse, chain, record, compacted=True)


def _remake_in_place(
    warehouse: Warehouse, chain: Chain, record: Publication, *, compacted: bool
) -> None:
    folder = warehouse.folder_of(record.publication_id)
    with _remade(warehouse, record, compacted=compacted) as (building, renewed):
        for file in files_of(renewed.tables):
            target = folder / file.name
            if target.is_dir() and not target.is_symlink():
                warehouse.put_aside(target)
            flush_to_disk(building / file.name)
            (building / file.name).replace(target)
            passing("file remade")
        gone = {file.name for file in files_of(record.tables)}
        for name in gone - {file.name for file in files_of(renewed.tables)}:
            (folder / name).unlink(missing_ok=True)
        flush_to_disk(folder)
        _link_remade(warehouse, chain, record, renewed)
        _write_record(warehouse, folder, renewed)


def _remake_whole(
    warehouse: Warehouse, chain: Chain, record: Publication, *, compacted: bool
) -> None:
    with _remade(warehouse, record, compacted=compacted) as (building, renewed):
        _link_remade(warehouse, chain, record, renewed)
        warehouse.publish_directory(building, renewed)


def _link_remade(
    warehouse: Warehouse, chain: Chain, record: Publication, renewed: Publication
) -> None:
    if renewed != record:
        add_links(warehouse, chain, [link(Event.REMADE, record=renewed)])


@contextmanager
def _remade(
    warehouse: Warehouse, record: Publication, *, compacted: bool
) -> Iterator[tuple[Path, Publication]]:
    """A publication's files under a folder of their own, and the record of them."""
    building = warehouse.building_folder(f"again-{record.publication_id}")
    staging = warehouse.building_folder(f"rows-{record.publication_id}")
    try:
        tables = remade_tables(warehouse, record, staging, building, compacted=compacted)
        yield building, record.model_copy(update={"tables": tables})
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(staging, ignore_errors=True)


def remade_tables(
    warehouse: Warehouse,
    record: Publication,
    staging: Path,
    building: Path,
    *,
    compacted: bool = True,
) -> dict[str, PublishedTable]:
    """Make a publication's files again under `building`, from raw bytes.

    Raises:
        WarehouseError: other rows come out than were published, or nothing is kept to replay.
        DatasetError: raw bytes that are gone or damaged.
    """
    before = _Before(warehouse, record.sequence, compacted=compacted)
    shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    if needs_copies(record):
        restore_copies(warehouse, record, building)
        return record.tables
    _replay(warehouse, before, record, staging)
    tables = write_tables(before, staging, building)
    differing = _differing(record.tables, tables)
    if differing:
        # By newer rules other tables may have other rows. Those that are whole stay as they are.
        whole = _whole_tables(warehouse, record)
        damaged = record.tables.keys() - whole.keys()
        if not damaged or damaged & differing.keys():
            raise WarehouseError(
                f"replaying its raw bytes gives other rows ({', '.join(differing.values())}), so "
                "it was made by another version; move its directory away and ingest its dataset "
                "again"
            )
        folder = warehouse.folder_of(record.publication_id)
        for file in files_of(whole):
            (building / file.name).unlink(missing_ok=True)
            shutil.copyfile(folder / file.name, building / file.name)
        tables = {**whole, **{name: tables[name] for name in damaged if name in tables}}
    return tables


def _differing(
    expected: dict[str, PublishedTable], actual: dict[str, PublishedTable]
) -> dict[str, str]:
    """What tables have other numbers of rows, and which."""
    before, after = (
        {name: table.rows for name, table in tables.items() if table.rows}
        for tables in (expected, actual)
    )
    return {
        name: f"{name} {after.get(name, 0)} rows, not {before.get(name, 0)}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name, 0) != after.get(name, 0)
    }


def _whole_tables(warehouse: Warehouse, record: Publication) -> dict[str, PublishedTable]:
    folder = warehouse.folder_of(record.publication_id)
    return {
        name: table
        for name, table in record.tables.items()
        if all(is_whole(folder / file.name, file) for file in table.files)
    }


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
    """Make a generation again from its publications, each with a directory of its own first.

    The directories are taken from what the generation replaced, from its files that are whole, or
    made again from raw bytes. A process that dies on the way leaves them, and they count.
    """
    chain = catch_up(warehouse)
    folder = warehouse.folder_of_generation(number)
    generation = readable_generation(folder)
    if generation is not None and generation.number != number:
        generation = None
    compacted = chain.compacted(number)
    if compacted is not None and generation is not None:
        # Its files are looked at as they were written, whatever its record says now.
        generation = generation.model_copy(update={"tables": compacted.tables})
    wanted = set(compacted.publications if compacted else ())
    wanted |= {record.publication_id for record in generation.publications} if generation else set()
    if not wanted:
        raise WarehouseError(f"{folder}: nothing says which publications it held")
    for name in sorted(wanted - chain.given_up):
        record = chain.records.get(name)
        if record is None:
            raise WarehouseError(f"{name}, which it holds, is known by its name only")
        _give_directory(warehouse, chain, folder, generation, record)
    newest = max(int(name.partition("-")[0]) for name in wanted)
    made = write_generation(_Before(warehouse, newest + 1, compacted=False), number)
    add_links(warehouse, chain, [link(Event.COMPACTED, generation=made)])
    return "made again from the publications that it holds"


def _has_copies(warehouse: Warehouse, record: Publication) -> bool:
    return needs_copies(record) and copy_digests(record) <= set(warehouse.store.digests())


def _give_directory(
    warehouse: Warehouse,
    chain: Chain,
    folder: Path,
    generation: Generation | None,
    record: Publication,
) -> None:
    own = warehouse.folder_of(record.publication_id)
    if not own.exists() and generation is not None and not _has_copies(warehouse, record):
        building = warehouse.building_folder(f"own-{record.publication_id}")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        try:
            tables = rows_of_generation(folder, generation, record, building)
            if tables is not None:
                renewed = record.model_copy(update={"tables": tables})
                keep_copies(warehouse, renewed, building)
                _link_remade(warehouse, chain, record, renewed)
                warehouse.publish_directory(building, renewed)
                return
        finally:
            shutil.rmtree(building, ignore_errors=True)
    try:
        _restore(warehouse, chain, record, compacted=False)
    except (WarehouseError, DatasetError) as error:
        raise WarehouseError(f"{record.publication_id}, which it holds: {error.message}") from error
