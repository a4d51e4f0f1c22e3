"""Where the data lies: the folders of a warehouse, its lock, and its publications on disk.

    raw/            raw bytes of every source file, once per digest
    snapshots/      what each ingested revision listed
    staging/        parts of runs in progress; safe to delete when nothing runs
    publications/   one directory `publication_id=…` per publication, immutable
    generations/    publications rewritten into fewer, larger files, immutable
    chain/          what was published, link by link, so that a loss is seen
    put-aside/      what stood in the way of a repair; nothing reads it
    kernelindex.duckdb   the database that people query

Writing publications is `publication.py`, rewriting them `compaction.py`; building the database is
`database.py`.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from assets.tables.contracts import STAGED, unknown_to_this
from assets.tables.errors import WarehouseError
from assets.tables.failpoints import passing
from assets.tables.holds import hold, remove_unheld
from assets.traces.errors import DatasetError
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetSnapshot, load_snapshot

_LOCK_TIMEOUT_S = 600
_MEMORY_LIMIT = "256MB"
PUBLICATION_RECORD = "publication.json"
GENERATION_RECORD = "generation.json"
GENESIS = "00000000-00000000T000000Z"
_PARTITION = "publication_id="
_IDENTIFIER = re.compile(r"\d{8}-\d{8}T\d{6}Z")
_NUMBER = re.compile(r"\d{8}")
_SPILL = "duckdb"


class PublishedFile(BaseModel):
    """One Parquet file of a publication."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    rows: int
    size_bytes: int
    sha256: str


class PublishedTable(BaseModel):
    """What a publication brought to one table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[PublishedFile, ...]

    @property
    def rows(self) -> int:
        """Rows of all its files."""
        return sum(file.rows for file in self.files)


class Publication(BaseModel):
    """The record of a publication: what it brought, by table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    publication_id: str
    published_at: AwareDatetime
    kind: str
    dataset: str | None = None
    revision: str | None = None
    snapshot_id: str | None = None
    tables: dict[str, PublishedTable]
    previous: str | None = None
    """The end of the chain when it was published; None before there were chains."""

    @property
    def sequence(self) -> int:
        """Position in the order of publications; the first part of the identifier."""
        return int(self.publication_id.partition("-")[0])


class Generation(BaseModel):
    """The record of a generation: the publications that it holds, and its files by table.

    Its files have the columns of `PUBLISHED`: every row keeps the publication that brought it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    created_at: AwareDatetime
    publications: tuple[Publication, ...]
    tables: dict[str, PublishedTable]


Record = TypeVar("Record", Publication, Generation)


class Warehouse:
    """A warehouse folder; made ready for use when it is opened for writing."""

    until: str | None = None
    """The last publication that is looked at; None for all of them."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        self.publications_folder = self.root / "publications"
        self.generations_folder = self.root / "generations"
        self.snapshots = self.root / "snapshots"
        self.database = self.root / "kernelindex.duckdb"
        self._store: RawStore | None = None

    @property
    def exists(self) -> bool:
        """Whether anything was ever published here."""
        return (self.folder_of(GENESIS) / PUBLICATION_RECORD).is_file()

    def prepare(self) -> None:
        """Make the folders and the empty first publication.

        Raises:
            WarehouseError: where the folder cannot be written.
        """
        try:
            for folder in (self.publications_folder, self.snapshots, self.root / "staging"):
                folder.mkdir(parents=True, exist_ok=True)
            probe = self.root / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise WarehouseError(
                f"{self.root}: cannot write here ({error.strerror}); choose a folder with "
                "KERNELINDEX_WAREHOUSE"
            ) from error
        self.remove_dead_runs()
        if not self.exists:
            with self.locked():
                self.prepare_genesis()
        elif STAGED.keys() - self.record_of(GENESIS).tables.keys():
            with self.locked():
                self._complete_genesis()

    def _complete_genesis(self) -> None:
        """Add an empty file for every table that is younger than this warehouse."""
        folder = self.folder_of(GENESIS)
        record = self.record_of(GENESIS)
        tables = dict(record.tables)
        for name in STAGED.keys() - tables.keys():
            path = folder / f"{name}-00000.parquet"
            pq.write_table(pa.Table.from_batches([], STAGED[name]), path)
            flush_to_disk(path)
            tables[name] = PublishedTable(files=(published_file(path),))
        completed = record.model_copy(update={"tables": tables})
        temporary = folder / f".{PUBLICATION_RECORD}.tmp"
        temporary.write_text(completed.model_dump_json(indent=2) + "\n")
        flush_to_disk(temporary)
        temporary.replace(folder / PUBLICATION_RECORD)
        flush_to_disk(folder)

    def prepare_genesis(self) -> None:
        """Make the empty first publication where there is none; the writer's lock is held."""
        # An empty file per table: a list of files that is never empty keeps every reader simple.
        if self.exists:
            return
        building = self.building_folder(GENESIS)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        tables = {}
        for name, schema in STAGED.items():
            path = building / f"{name}-00000.parquet"
            pq.write_table(pa.Table.from_batches([], schema), path)
            tables[name] = PublishedTable(files=(published_file(path),))
        record = Publication(
            publication_id=GENESIS,
            published_at=datetime.now(UTC),
            kind="genesis",
            tables=tables,
        )
        self.publish_directory(building, record)

    def publish_directory(self, building: Path, record: Publication) -> None:
        """Make a finished directory a publication.

        The one step by which data appears: on object storage it becomes a conditional put of the
        record, and nothing else depends on the difference.
        """
        (building / PUBLICATION_RECORD).write_text(record.model_dump_json(indent=2) + "\n")
        for path in building.iterdir():
            flush_to_disk(path)
        flush_to_disk(building)
        passing("publication built")
        building.rename(self.folder_of(record.publication_id))
        flush_to_disk(self.publications_folder)
        passing("publication renamed")

    def folder_of(self, publication_id: str) -> Path:
        """The directory of a publication; its name gives every row a `publication_id` column."""
        return self.publications_folder / f"{_PARTITION}{publication_id}"

    def snapshot_file(self, snapshot_id: str) -> Path:
        """Where the list of files of an ingested revision lies."""
        return self.snapshots / f"{snapshot_id[7:23]}.json"

    def snapshot_of(self, snapshot_id: str) -> DatasetSnapshot | None:
        """The list of files of an ingested revision; None where it is gone or damaged."""
        try:
            snapshot = load_snapshot(self.snapshot_file(snapshot_id))
        except DatasetError:
            return None
        return snapshot if snapshot.snapshot_id == snapshot_id else None

    def building_folder(self, publication_id: str) -> Path:
        """Where a publication is built before it appears."""
        return self.root / "staging" / f"publication-{publication_id}"

    @property
    def store(self) -> RawStore:
        """The raw bytes."""
        if self._store is None:
            self._store = RawStore(self.root / "raw")
        return self._store

    def publications(self) -> list[Publication]:
        """All publications, oldest first, wherever their rows lie.

        Raises:
            WarehouseError: a publication whose record is missing or damaged.
        """
        generation = self.generation()
        compacted = (
            {}
            if generation is None
            else {record.publication_id: record for record in generation.publications}
        )
        own = {record.publication_id: record for record in self.uncompacted()}
        return [
            record
            for publication_id, record in sorted({**own, **compacted}.items())
            if self.until is None or publication_id <= self.until
        ]

    def uncompacted(self) -> list[Publication]:
        """Publications whose rows lie in their own directory, oldest first; the empty first one
        is always among them.

        Raises:
            WarehouseError: a publication whose record is missing or damaged.
        """
        generation = self.generation()
        compacted = (
            set()
            if generation is None
            else {record.publication_id for record in generation.publications}
        )
        return [
            record
            for publication_id in self.publication_folders()
            if (publication_id == GENESIS or publication_id not in compacted)
            and (self.until is None or publication_id <= self.until)
            # A copy of a directory under another name is no publication.
            and (record := self.record_of(publication_id)).publication_id == publication_id
        ]

    def publication_folders(self) -> list[str]:
        """The identifiers of the publications that have a directory, oldest first."""
        if not self.publications_folder.is_dir():
            return []
        return sorted(
            name
            for folder in self.publications_folder.iterdir()
            if folder.name.startswith(_PARTITION)
            and _IDENTIFIER.fullmatch(name := folder.name.removeprefix(_PARTITION))
            and folder.is_dir()
        )

    def generation(self) -> Generation | None:
        """The newest generation, None where nothing was compacted yet.

        Raises:
            OtherVersionError: its record is that of a newer version of this program.
            WarehouseError: its record is missing or damaged.
        """
        for number in reversed(self.generation_numbers()):
            path = self.folder_of_generation(number) / GENERATION_RECORD
            found = _record(path, Generation, "record of the generation")
            # A copy of a directory under another name is no generation.
            if found.number == number:
                return found
        return None

    def generation_numbers(self) -> list[int]:
        """The generations that have a directory, oldest first."""
        if not self.generations_folder.is_dir():
            return []
        return sorted(
            int(folder.name)
            for folder in self.generations_folder.iterdir()
            if _NUMBER.fullmatch(folder.name) and folder.is_dir()
        )

    def folder_of_generation(self, number: int) -> Path:
        """The directory of a generation."""
        return self.generations_folder / f"{number:08d}"

    def record_of(self, publication_id: str) -> Publication:
        """The record in a publication's directory.

        Raises:
            OtherVersionError: a record of a newer version of this program.
            WarehouseError: a record that is missing or damaged.
        """
        path = self.folder_of(publication_id) / PUBLICATION_RECORD
        return _record(path, Publication, "publication record")

    def files(self, table: str) -> list[str]:
        """Every Parquet file of a table, oldest first; never an empty list."""
        return [*self.compacted_files(table), *self.own_files(table)]

    def own_files(self, table: str) -> list[str]:
        """The files of a table that lie in directories of publications; never an empty list."""
        return [
            str(self.folder_of(record.publication_id) / file.name)
            for record in self.uncompacted()
            if table in record.tables
            for file in record.tables[table].files
        ]

    def compacted_files(self, table: str) -> list[str]:
        """The files of a table that lie in the newest generation."""
        generation = self.generation()
        if generation is None or table not in generation.tables:
            return []
        folder = self.folder_of_generation(generation.number)
        return [str(folder / file.name) for file in generation.tables[table].files]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer's lock; readers never need it.

        Raises:
            WarehouseError: another writer holds it for too long.
        """
        lock = FileLock(self.root / ".writer.lock", timeout=_LOCK_TIMEOUT_S)
        try:
            lock.acquire()
        except Timeout as error:
            raise WarehouseError(
                f"{self.root}: another process has been writing for {_LOCK_TIMEOUT_S} s; "
                "wait for it or stop it"
            ) from error
        except (OSError, NotImplementedError) as error:
            raise WarehouseError(f"{self.root}: cannot write here ({error})") from error
        try:
            yield
        finally:
            lock.release()

    def staging(self, name: str) -> Path:
        """A folder for the parts of one run, which is this process; empty when new."""
        folder = self.root / "staging" / name
        hold(folder)
        return folder

    def dead_runs(self) -> list[Path]:
        """Folders of runs that may be those of dead processes; `remove_unheld` knows."""
        return sorted(
            folder
            for folder in self.root.glob("staging/*")
            if folder.name != _SPILL and not folder.name.startswith("publication-")
        )

    def remove_dead_runs(self) -> list[Path]:
        """Remove the staging folders of runs whose process has ended; return them."""
        remove_unheld(self.root / "staging" / _SPILL, only_content=True)
        return [folder for folder in self.dead_runs() if remove_unheld(folder)]

    def put_aside(self, path: Path) -> Path:
        """Move what is in the way to where nothing looks for it; nothing is deleted."""
        folder = self.root / "put-aside"
        folder.mkdir(exist_ok=True)
        number = 1 + sum(1 for _ in folder.iterdir())
        while (target := folder / f"{number:04d}-{path.name}").exists():
            number += 1
        return path.rename(target)

    def connect(self, memory_limit: str = _MEMORY_LIMIT) -> duckdb.DuckDBPyConnection:
        """An in-memory DuckDB with bounded memory that spills into this warehouse."""
        spill = self.root / "staging" / _SPILL
        hold(spill)
        return duckdb.connect(
            config={
                "memory_limit": memory_limit,
                "temp_directory": str(spill),
                "threads": str(os.cpu_count() or 1),
            }
        )


def _record(path: Path, kind: type[Record], what: str) -> Record:
    try:
        record = kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        if all(problem["type"] == "extra_forbidden" for problem in found):
            names = ", ".join(sorted({str(problem["loc"][-1]) for problem in found}))
            raise unknown_to_this(f"a {what} with {names}", path.parent) from error
        raise WarehouseError(f"{path}: no readable {what}; run `kernelindex doctor`") from error
    except OSError as error:
        raise WarehouseError(f"{path}: no readable {what}; run `kernelindex doctor`") from error
    for table in sorted(record.tables.keys() - STAGED.keys()):
        raise unknown_to_this(f"the table {table}", path.parent)
    return record


def published_file(path: Path) -> PublishedFile:
    """What the record keeps of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    rows = pq.read_metadata(path).num_rows
    return PublishedFile(name=path.name, rows=rows, size_bytes=path.stat().st_size, sha256=digest)


def flush_to_disk(path: Path) -> None:
    """fsync a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
