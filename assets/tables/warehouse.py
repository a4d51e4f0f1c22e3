"""Where the data lies: the folders of a warehouse, its lock, and its publications on disk.

    raw/            raw bytes of every source file, once per digest
    snapshots/      what each ingested revision listed
    staging/        parts of runs in progress; safe to delete when nothing runs
    publications/   one directory per publication, immutable
    kernelindex.duckdb   the database that people query

Writing publications is `publication.py`; building the database is `database.py`.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from assets.tables.contracts import PUBLISHED
from assets.tables.errors import WarehouseError
from assets.traces.raw_store import RawStore

_LOCK_TIMEOUT_S = 600
_MEMORY_LIMIT = "256MB"
_RECORD = "publication.json"
_GENESIS = "00000000-genesis"


class TableFile(BaseModel):
    """One Parquet file of a publication."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    size_bytes: int
    sha256: str


class Publication(BaseModel):
    """The record of a publication: what it brought, by table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    publication_id: str
    published_at: AwareDatetime
    kind: str
    dataset: str | None = None
    revision: str | None = None
    snapshot_id: str | None = None
    tables: dict[str, TableFile]

    @property
    def sequence(self) -> int:
        """Position in the order of publications; the first part of the identifier."""
        return int(self.publication_id.partition("-")[0])


class Warehouse:
    """A warehouse folder; made ready for use when it is opened for writing."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        self.publications_folder = self.root / "publications"
        self.snapshots = self.root / "snapshots"
        self.database = self.root / "kernelindex.duckdb"
        self._store: RawStore | None = None

    @property
    def exists(self) -> bool:
        """Whether anything was ever published here."""
        return (self.publications_folder / _GENESIS / _RECORD).is_file()

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
        if not self.exists:
            with self.locked():
                self._write_genesis()

    def _write_genesis(self) -> None:
        # An empty file per table: a list of files that is never empty keeps every reader simple.
        if self.exists:
            return
        building = self.publications_folder / f".{_GENESIS}.tmp"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        for name, schema in PUBLISHED.items():
            pq.write_table(schema.empty_table(), building / f"{name}.parquet")
        record = Publication(
            publication_id=_GENESIS,
            published_at=datetime.now(UTC),
            kind="genesis",
            tables={name: table_file(building / f"{name}.parquet", rows=0) for name in PUBLISHED},
        )
        self.publish_directory(building, record)

    def publish_directory(self, building: Path, record: Publication) -> None:
        """Make a finished directory a publication.

        The one step by which data appears: on object storage it becomes a conditional put of the
        record, and nothing else depends on the difference.
        """
        (building / _RECORD).write_text(record.model_dump_json(indent=2) + "\n")
        for path in building.iterdir():
            flush_to_disk(path)
        flush_to_disk(building)
        building.rename(self.publications_folder / record.publication_id)
        flush_to_disk(self.publications_folder)

    @property
    def store(self) -> RawStore:
        """The raw bytes."""
        if self._store is None:
            self._store = RawStore(self.root / "raw")
        return self._store

    def publications(self) -> list[Publication]:
        """All publications, oldest first.

        Raises:
            WarehouseError: a publication whose record is missing or damaged.
        """
        if not self.publications_folder.is_dir():
            return []
        found = [
            self._record_of(folder)
            for folder in sorted(self.publications_folder.iterdir())
            if folder.is_dir() and not folder.name.startswith(".")
        ]
        return sorted(found, key=lambda record: record.publication_id)

    def _record_of(self, folder: Path) -> Publication:
        try:
            return Publication.model_validate_json((folder / _RECORD).read_bytes())
        except (OSError, ValidationError) as error:
            raise WarehouseError(
                f"{folder / _RECORD}: no readable publication record; run `kernelindex doctor`"
            ) from error

    def files(self, table: str) -> list[str]:
        """Every Parquet file of a table that has rows, oldest first; never an empty list."""
        with_rows = [
            str(self.publications_folder / record.publication_id / f"{table}.parquet")
            for record in self.publications()
            if record.kind == "genesis" or record.tables.get(table, _NO_FILE).rows
        ]
        return with_rows or [str(self.publications_folder / _GENESIS / f"{table}.parquet")]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer's lock; readers never need it.

        Raises:
            WarehouseError: another writer holds it for too long.
        """
        try:
            with FileLock(self.root / ".writer.lock", timeout=_LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise WarehouseError(
                f"{self.root}: another process has been writing for {_LOCK_TIMEOUT_S} s; "
                "wait for it or stop it"
            ) from error

    def staging(self, name: str) -> Path:
        """A folder for the parts of one run; empty when new."""
        folder = self.root / "staging" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def connect(self, memory_limit: str = _MEMORY_LIMIT) -> duckdb.DuckDBPyConnection:
        """An in-memory DuckDB with bounded memory that spills into this warehouse."""
        spill = self.root / "staging" / "duckdb"
        spill.mkdir(parents=True, exist_ok=True)
        return duckdb.connect(
            config={
                "memory_limit": memory_limit,
                "temp_directory": str(spill),
                "threads": str(os.cpu_count() or 1),
            }
        )


_NO_FILE = TableFile(rows=0, size_bytes=0, sha256="")


def table_file(path: Path, *, rows: int) -> TableFile:
    """What the record keeps of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return TableFile(rows=rows, size_bytes=path.stat().st_size, sha256=digest)


def flush_to_disk(path: Path) -> None:
    """fsync a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
