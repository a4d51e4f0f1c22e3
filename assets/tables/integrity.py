"""Examine a warehouse's folders and files: what is missing, damaged, half-built or unlisted.

What rows say is examined by `row_checks.py`, the database by `assets.leaderboards`. Nothing is
changed here; `repair.py` does that.
"""

import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from assets.tables.contracts import check_schema
from assets.tables.errors import OtherVersionError, WarehouseError
from assets.tables.findings import Examination, Fault, Finding, Level
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
from assets.traces.errors import RawStoreError

_STALE_AFTER_S = 24 * 3600.0
_LOW_DISK_BYTES = 1024**3


def examine_files(warehouse: Warehouse, *, read_bytes: bool = True) -> Examination:
    """Look at everything that lies in the warehouse's folders.

    `read_bytes` recomputes the digest of every file; without it sizes and records are compared.
    """
    found = Examination()
    found.findings += _disk(warehouse)
    found.findings += _leftovers(warehouse)
    generation = _examine_generation(warehouse, found, read_bytes)
    if any(finding.fault is Fault.OTHER_VERSION for finding in found.findings):
        return found  # what else is there cannot be told from what is missing
    _examine_publications(warehouse, generation, found, read_bytes)
    if read_bytes:
        _examine_raw(warehouse, generation, found)
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
    if not _is_quiet(warehouse):
        return []
    folders = [
        *warehouse.root.glob("staging/publication-*"),
        *warehouse.root.glob("staging/removed-*"),
    ]
    files = [
        *warehouse.root.glob(".*.building"),
        *warehouse.root.glob(".*.building.wal"),
        *warehouse.root.glob(".probe-*"),
    ]
    # A run reads and normalizes without the writer's lock: only its age says that it died.
    oldest = time.time() - _STALE_AFTER_S
    runs = [
        folder
        for folder in (
            *warehouse.root.glob("staging/*"),
            *warehouse.root.glob("as-of/.*.building*"),
        )
        if folder.name != "duckdb" and folder not in folders and _newest_change(folder) < oldest
    ]
    return sorted([*folders, *files, *runs])


def _is_quiet(warehouse: Warehouse) -> bool:
    try:
        with FileLock(warehouse.root / ".writer.lock", timeout=0):
            return True
    except (Timeout, OSError):
        return False


def _newest_change(folder: Path) -> float:
    times = [folder.stat().st_mtime, *(path.stat().st_mtime for path in folder.rglob("*"))]
    return max(times)


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


def _examine_generation(
    warehouse: Warehouse, found: Examination, read_bytes: bool
) -> Generation | None:
    numbers = warehouse.generation_numbers()
    if not numbers:
        return None
    folder = warehouse.folder_of_generation(numbers[-1])
    try:
        generation = warehouse.generation()
    except WarehouseError as error:
        finding = _of_record(folder / GENERATION_RECORD, error, "the generation")
        found.findings.append(_of_generation(finding, numbers[-1]))
        return None
    if generation is None:
        return None
    found.count("generations")
    for table, files in sorted(generation.tables.items()):
        for finding in _examine_table(folder, table, files, found, read_bytes, placed=True):
            found.findings.append(_of_generation(finding, generation.number))
    return generation


def _of_record(path: Path, error: WarehouseError, what: str) -> Finding:
    if isinstance(error, OtherVersionError):
        return Finding(Fault.OTHER_VERSION, Level.ERROR, str(path), error.message)
    return Finding(Fault.NO_RECORD, Level.ERROR, str(path), f"no readable record of {what}")


def _of_generation(finding: Finding, number: int) -> Finding:
    return Finding(finding.fault, finding.level, finding.where, finding.message, generation=number)


def _examine_publications(
    warehouse: Warehouse, generation: Generation | None, found: Examination, read_bytes: bool
) -> None:
    compacted = {record.publication_id for record in generation.publications} if generation else ()
    folders = warehouse.publication_folders()
    for publication_id in folders:
        if publication_id in compacted:
            continue  # kept for readers of before; the generation is what counts
        found.count("publications")
        found.findings += _examine_publication(warehouse, publication_id, found, read_bytes)
    found.findings += _missing_publications(warehouse, {*folders, *compacted})
    found.findings += _strays(warehouse, folders)


def _strays(warehouse: Warehouse, folders: list[str]) -> Iterator[Finding]:
    known = {warehouse.folder_of(publication_id) for publication_id in folders}
    for path in sorted(warehouse.publications_folder.iterdir()):
        if path not in known:
            yield Finding(
                Fault.UNLISTED_FILE,
                Level.WARNING,
                str(path),
                "is no publication, so no reader sees it; nothing of ours writes it",
            )


def _examine_publication(
    warehouse: Warehouse, publication_id: str, found: Examination, read_bytes: bool
) -> Iterator[Finding]:
    folder = warehouse.folder_of(publication_id)
    try:
        record = warehouse.record_of(publication_id)
    except WarehouseError as error:
        finding = _of_record(folder / PUBLICATION_RECORD, error, "the publication")
        yield replace(finding, publication_id=publication_id)
        return
    if record.publication_id != publication_id:
        yield Finding(
            Fault.NO_RECORD,
            Level.ERROR,
            str(folder / PUBLICATION_RECORD),
            f"the record is that of {record.publication_id}",
            publication_id=publication_id,
        )
        return
    for table, files in sorted(record.tables.items()):
        for finding in _examine_table(folder, table, files, found, read_bytes, placed=False):
            yield Finding(
                finding.fault,
                finding.level,
                finding.where,
                finding.message,
                publication_id=publication_id,
            )
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
        if path.name not in listed:
            yield Finding(
                Fault.UNLISTED_FILE,
                Level.WARNING,
                str(path),
                "the record does not list it, so no reader sees it; nothing of ours writes it",
            )


def _missing_publications(warehouse: Warehouse, present: set[str]) -> Iterator[Finding]:
    numbers = {int(publication_id.partition("-")[0]) for publication_id in present}
    if GENESIS not in present:
        yield Finding(
            Fault.MISSING_PUBLICATION,
            Level.ERROR,
            str(warehouse.folder_of(GENESIS)),
            "the empty first publication, which every list of files starts with, is gone",
            publication_id=GENESIS,
        )
    for number in sorted(set(range(1, max(numbers, default=0) + 1)) - numbers):
        yield Finding(
            Fault.MISSING_PUBLICATION,
            Level.ERROR,
            str(warehouse.publications_folder),
            f"publication number {number} is gone, its directory was removed or renamed; what "
            "it brought comes back by ingesting its dataset again",
        )


def _examine_raw(warehouse: Warehouse, generation: Generation | None, found: Examination) -> None:
    if not (warehouse.root / "raw").is_dir():
        return
    damaged: list[str] = []
    for digest in warehouse.store.digests():
        found.count("raw files")
        try:
            warehouse.store.get(digest)
        except RawStoreError:
            damaged.append(digest)
    if damaged:
        found.findings.append(
            Finding(
                Fault.DAMAGED_RAW,
                Level.ERROR,
                str(warehouse.root / "raw"),
                "raw bytes are not those of their name; ingest their dataset again to fetch them",
                count=len(damaged),
                examples=tuple(damaged[:3]),
            )
        )
    stored = set(warehouse.store.digests())
    for record in _readable_records(warehouse, generation):
        found.findings += _raw_of(warehouse, record, stored)


def _readable_records(warehouse: Warehouse, generation: Generation | None) -> Iterable[Publication]:
    if generation is not None:
        yield from generation.publications
    compacted = {record.publication_id for record in generation.publications} if generation else ()
    for publication_id in warehouse.publication_folders():
        if publication_id not in compacted:
            try:
                yield warehouse.record_of(publication_id)
            except WarehouseError:
                continue  # a finding already


def _raw_of(warehouse: Warehouse, record: Publication, stored: set[str]) -> Iterator[Finding]:
    if record.snapshot_id is None:
        return
    if record.kind == "correction":
        wanted = {record.snapshot_id}
    else:
        path = warehouse.snapshot_file(record.snapshot_id)
        snapshot = warehouse.snapshot_of(record.snapshot_id)
        if snapshot is None:
            yield Finding(
                Fault.MISSING_SNAPSHOT,
                Level.WARNING,
                str(path),
                f"publication {record.publication_id} could not be made again without it; ingest "
                f"{record.dataset} at {record.revision} again to write it",
            )
            return
        wanted = {file.digest for file in snapshot.files}
    missing = sorted(wanted - stored)
    if missing:
        yield Finding(
            Fault.MISSING_RAW,
            Level.WARNING,
            str(warehouse.root / "raw"),
            f"publication {record.publication_id} could not be made again without them; ingest "
            f"{record.dataset or 'the corrections'} again to fetch them",
            count=len(missing),
            examples=tuple(missing[:3]),
        )
