"""Examine a warehouse's folders and files: what is missing, damaged, half-built or unlisted.

What rows say is examined by `row_checks.py`, the database by `assets.leaderboards`. Nothing is
changed here; `repair.py` does that.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from assets.tables.chain import Chain, read_chain
from assets.tables.contracts import check_schema
from assets.tables.errors import OtherVersionError, WarehouseError
from assets.tables.findings import Examination, Fault, Finding, Level
from assets.tables.holds import is_held
from assets.tables.losses import in_generation, lost, readable_generation, seen_chain
from assets.tables.raw_checks import examine_raw
from assets.tables.warehouse import (
    GENERATION_RECORD,
    GENESIS,
    PUBLICATION_RECORD,
    Generation,
    Publication,
    PublishedFile,
    PublishedTable,
    Warehouse,
)

_STALE_AFTER_S = 3600.0
_LOW_DISK_BYTES = 1024**3


def examine_files(warehouse: Warehouse, *, read_bytes: bool = True) -> Examination:
    """Look at everything that lies in the warehouse's folders.

    `read_bytes` recomputes the digest of every file; without it sizes and records are compared.
    """
    found = Examination()
    found.findings += _disk(warehouse)
    found.findings += _leftovers(warehouse)
    found.findings += _of_newer_versions(warehouse)
    if found.findings and found.findings[-1].fault is Fault.OTHER_VERSION:
        return found  # what else is there cannot be told from what is missing
    chain = seen_chain(warehouse)
    for problem in chain.problems:
        where, _, message = problem.partition(": ")
        found.findings.append(Finding(Fault.DAMAGED_CHAIN, Level.ERROR, where, message))
    generation = _examine_generation(warehouse, chain, found, read_bytes)
    _examine_publications(warehouse, chain, found, read_bytes)
    examine_raw(warehouse, chain, _readable_records(chain, generation), found, read_bytes)
    return found


def _disk(warehouse: Warehouse) -> Iterator[Finding]:
    free = shutil.disk_usage(warehouse.root).free
    database = warehouse.database
    # A build writes a second database beside the first.
    needed = max(_LOW_DISK_BYTES, 2 * database.stat().st_size if database.is_file() else 0)
    if free < needed:
        yield Finding(
            Fault.LOW_DISK,
            Level.WARNING,
            str(warehouse.root),
            f"{free / 1024**2:,.0f} MiB are free, the next build may need "
            f"{needed / 1024**2:,.0f}; make room, or `kernelindex compact`",
        )


def leftovers(warehouse: Warehouse) -> list[Path]:
    """What processes that died left behind; nothing of a process that still runs."""
    found = [folder for folder in warehouse.dead_runs() if folder.is_dir() and not is_held(folder)]
    past = warehouse.root / "as-of"
    for path in past.glob(".*.building*"):
        if _is_free(past / f"{path.name[1:].partition('.building')[0]}.lock"):
            found.append(path)
    # Lists of files are written without a lock: only its age says that a writer died.
    oldest = time.time() - _STALE_AFTER_S
    for folder in ("snapshots", "settled"):
        temporary = (warehouse.root / folder).glob(".*.tmp")
        found += [path for path in temporary if path.stat().st_mtime < oldest]
    if _is_quiet(warehouse):
        for pattern in (
            "staging/publication-*",
            ".*.building",
            ".*.building.wal",
            ".probe-*",
            "chain/.*.tmp",
            "publications/*/.*.tmp",
        ):
            found += warehouse.root.glob(pattern)
    return sorted(found)


def _is_quiet(warehouse: Warehouse) -> bool:
    return _is_free(warehouse.root / ".writer.lock")


def _is_free(lock: Path) -> bool:
    try:
        with FileLock(lock, timeout=0):
            return True
    except Timeout:
        return False
    except (OSError, NotImplementedError):
        return True  # where nothing can be written, nobody writes


def _leftovers(warehouse: Warehouse) -> Iterator[Finding]:
    if not _is_quiet(warehouse):
        yield Finding(
            Fault.WRITER_ACTIVE,
            Level.WARNING,
            str(warehouse.root / ".writer.lock"),
            "another process is writing now; ask again when it has finished",
        )
    for path in leftovers(warehouse):
        yield Finding(
            Fault.LEFTOVER,
            Level.WARNING,
            str(path),
            "left by a process that died; it was never published and no reader sees it",
        )


def _of_newer_versions(warehouse: Warehouse) -> Iterator[Finding]:
    """Records and links that only a newer version of this program can read."""
    reads: list[Callable[[], object]] = [
        partial(warehouse.record_of, publication_id)
        for publication_id in warehouse.publication_folders()
    ]
    reads += [warehouse.generation, partial(read_chain, warehouse)]
    for read in reads:
        try:
            read()
        except OtherVersionError as error:
            where, _, message = error.message.partition(": ")
            yield Finding(Fault.OTHER_VERSION, Level.ERROR, where, message)
        except WarehouseError:
            continue  # damage is looked at below


def _examine_generation(
    warehouse: Warehouse, chain: Chain, found: Examination, read_bytes: bool
) -> Generation | None:
    def note(fault: Fault, path: Path, message: str, number: int) -> None:
        found.findings.append(Finding(fault, Level.ERROR, str(path), message, generation=number))

    generation, number = None, 0
    for number in reversed(warehouse.generation_numbers()):
        folder = warehouse.folder_of_generation(number)
        generation = readable_generation(folder)
        if generation is None or generation.number == number:
            break
        found.findings.append(_stray(folder, f"is a copy of generation {generation.number}"))
        generation, number = None, 0
    newest = chain.generation
    if newest is not None and number < newest.number:
        path = warehouse.folder_of_generation(newest.number)
        message = (
            f"generation {newest.number} is gone, with {len(newest.publications)} publications"
        )
        note(Fault.MISSING_GENERATION, path, message, newest.number)
        return generation
    if number == 0:
        return None
    folder = warehouse.folder_of_generation(number)
    path = folder / GENERATION_RECORD
    if generation is None:
        note(Fault.NO_RECORD, path, "no readable record of the generation", number)
        return None
    found.count("generations")
    if folder.is_symlink() or path.is_symlink():
        note(Fault.DAMAGED_FILE, folder, "is a link to somewhere else", number)
    compacted = chain.compacted(number)
    ids = tuple(record.publication_id for record in generation.publications)
    if compacted and (compacted.tables, compacted.publications) != (generation.tables, ids):
        note(Fault.NO_RECORD, path, "the record is not the one that was written", number)
    for name in sorted(chain.given_up.intersection(ids) - set(warehouse.publication_folders())):
        message = f"still has rows of {name}, whose loss was accepted"
        note(Fault.ROW_COUNT, folder, message, number)
    for table, files in sorted(generation.tables.items()):
        for finding in _examine_table(folder, table, files, found, read_bytes, placed=True):
            found.findings.append(_of_generation(finding, generation.number))
    return generation


def _of_generation(finding: Finding, number: int) -> Finding:
    return Finding(finding.fault, finding.level, finding.where, finding.message, generation=number)


def _examine_publications(
    warehouse: Warehouse, chain: Chain, found: Examination, read_bytes: bool
) -> None:
    compacted = set(in_generation(warehouse, chain)) - chain.given_up
    folders = warehouse.publication_folders()
    for publication_id in folders:
        if publication_id in compacted:
            continue  # kept for readers of before; the generation is what counts
        found.count("publications")
        found.findings += _examine_publication(warehouse, publication_id, chain, found, read_bytes)
    found.findings += _missing_publications(warehouse, chain, folders)
    found.findings += _strays(warehouse, folders)


def _strays(warehouse: Warehouse, folders: list[str]) -> Iterator[Finding]:
    known = {warehouse.folder_of(publication_id) for publication_id in folders}
    known |= {warehouse.folder_of_generation(number) for number in warehouse.generation_numbers()}
    for parent in (warehouse.publications_folder, warehouse.generations_folder):
        for path in sorted(parent.iterdir()) if parent.is_dir() else []:
            if path not in known:
                yield _stray(path, "is no publication")


def _stray(path: Path, what: str) -> Finding:
    message = f"{what}, so no reader sees it; nothing of ours writes it"
    return Finding(Fault.UNLISTED_FILE, Level.WARNING, str(path), message)


def _examine_publication(
    warehouse: Warehouse, publication_id: str, chain: Chain, found: Examination, read_bytes: bool
) -> Iterator[Finding]:
    folder = warehouse.folder_of(publication_id)
    path = folder / PUBLICATION_RECORD

    def damage(fault: Fault, path: Path, message: str) -> Finding:
        level = Level.ERROR
        return Finding(fault, level, str(path), message, publication_id=publication_id)

    chained = chain.records.get(publication_id)
    record: Publication | None
    try:
        record = warehouse.record_of(publication_id)
    except WarehouseError:
        record = None
        yield damage(Fault.NO_RECORD, path, "no readable record of the publication")
    if record is not None and record.publication_id != publication_id:
        if publication_id not in chain.records and publication_id != GENESIS:
            yield _stray(folder, f"is a copy of {record.publication_id}")
            return
        yield damage(Fault.NO_RECORD, path, f"the record is that of {record.publication_id}")
        record = None
    if record is not None and chained is not None and record != chained:
        yield damage(Fault.NO_RECORD, path, "the record is not the one that was published")
    record = chained or record
    if record is None:
        return
    if folder.is_symlink() or path.is_symlink():
        yield damage(Fault.DAMAGED_FILE, folder, "is a link to somewhere else")
    for table, files in sorted(record.tables.items()):
        for finding in _examine_table(folder, table, files, found, read_bytes, placed=False):
            yield damage(finding.fault, Path(finding.where), finding.message)
    yield from _unlisted(folder, record)


def _examine_table(
    folder: Path,
    table: str,
    published: PublishedTable,
    found: Examination,
    read_bytes: bool,
    *,
    placed: bool,
) -> Iterator[Finding]:
    for file in published.files:
        found.count("files")
        finding = _examine_file(folder / file.name, table, file, read_bytes, placed=placed)
        if finding is not None:
            yield finding


def _examine_file(
    path: Path,
    table: str,
    file: PublishedFile,
    read_bytes: bool,
    *,
    placed: bool,
) -> Finding | None:
    def finding(fault: Fault, message: str) -> Finding:
        return Finding(fault, Level.ERROR, str(path), message)

    if path.is_symlink():
        return finding(Fault.DAMAGED_FILE, f"is a link to {path.readlink()}, no file of its own")
    if not path.is_file():
        return finding(Fault.MISSING_FILE, f"the record lists {file.rows} rows of {table} here")
    size_bytes = path.stat().st_size
    if size_bytes != file.size_bytes:
        problem = finding(
            Fault.DAMAGED_FILE, f"{size_bytes} bytes, {file.size_bytes} were published"
        )
        return _other_schema(path, table, placed=placed) or problem
    if read_bytes:
        with path.open("rb") as stream:
            actual = hashlib.file_digest(stream, "sha256").hexdigest()
        if actual != file.sha256:
            return _other_schema(path, table, placed=placed) or finding(
                Fault.DAMAGED_FILE, f"its SHA-256 is {actual[:12]}…, not {file.sha256[:12]}…"
            )
    if other := _other_schema(path, table, placed=placed):
        return other
    rows = pq.read_metadata(path).num_rows
    if rows != file.rows:
        return finding(Fault.ROW_COUNT, f"{rows} rows, the record says {file.rows}")
    return None


def _other_schema(path: Path, table: str, *, placed: bool) -> Finding | None:
    """A file that can be read but is another table's, or of another version; None otherwise."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return None
    try:
        check_schema(table, path, schema, placed=placed)
    except OtherVersionError as error:
        fault, message = Fault.OTHER_VERSION, error.message
    except WarehouseError as error:
        fault, message = Fault.OTHER_SCHEMA, error.message
    else:
        return None
    return Finding(fault, Level.ERROR, str(path), message.removeprefix(f"{path}: "))


def _unlisted(folder: Path, record: Publication) -> Iterator[Finding]:
    listed = {PUBLICATION_RECORD} | {
        file.name for table in record.tables.values() for file in table.files
    }
    for path in sorted(folder.iterdir()):
        if path.name not in listed and not path.name.endswith(".tmp"):
            yield Finding(
                Fault.UNLISTED_FILE,
                Level.WARNING,
                str(path),
                "the record does not list it, so no reader sees it; nothing of ours writes it",
            )


def _missing_publications(
    warehouse: Warehouse, chain: Chain, folders: list[str]
) -> Iterator[Finding]:
    if GENESIS not in folders:
        yield Finding(
            Fault.MISSING_PUBLICATION,
            Level.ERROR,
            str(warehouse.folder_of(GENESIS)),
            "the empty first publication, which every list of files starts with, is gone",
            publication_id=GENESIS,
        )
    for name in lost(warehouse, chain):
        record = chain.records[name]
        rows = sum(table.rows for table in record.tables.values()) if record else 0
        brought = f", with {rows:,} rows" if record else ""
        yield Finding(
            Fault.MISSING_PUBLICATION,
            Level.ERROR,
            str(warehouse.folder_of(name) if "-" in name else warehouse.publications_folder),
            f"publication number {int(name.partition('-')[0])} ({name}) is gone{brought}; put its "
            f"directory back, or `kernelindex doctor --accept-loss {name} --reason ...`",
            publication_id=name,
        )


def _readable_records(chain: Chain, generation: Generation | None) -> Iterable[Publication]:
    found = {name: record for name, record in chain.records.items() if name not in chain.given_up}
    for record in generation.publications if generation else ():
        found[record.publication_id] = found.get(record.publication_id) or record
    return [record for _, record in sorted(found.items()) if record is not None]
