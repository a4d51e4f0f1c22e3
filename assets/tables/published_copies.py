"""Where a publication's files come from when its own are gone: copies, and rows of a generation.

A publication that no raw bytes can make again (a controlled rerun) keeps a copy of its own files
in the raw store, under the digests that its record gives. Making one again from the files of a
dataset is the business of `repair.py`.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.tables.contracts import PUBLICATION_COLUMNS
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import (
    GENESIS,
    Generation,
    Publication,
    PublishedFile,
    PublishedTable,
    Warehouse,
    published_file,
)
from assets.traces.errors import RawStoreError

_BATCH_ROWS = 100_000
_STAMPS = [name for name, _ in PUBLICATION_COLUMNS]


def needs_copies(record: Publication) -> bool:
    """Whether nothing else in the raw store says what a publication brought."""
    return record.snapshot_id is None and record.publication_id != GENESIS


def keep_copies(warehouse: Warehouse, record: Publication, folder: Path) -> None:
    """Put the files of a publication that needs it into the raw store.

    Raises:
        WarehouseError: the raw store cannot be written.
    """
    if not needs_copies(record):
        return
    try:
        with warehouse.store.batch():
            for file in files_of(record.tables):
                if is_whole(folder / file.name, file):
                    warehouse.store.put_file(folder / file.name)
    except (OSError, RawStoreError) as error:
        raise WarehouseError(f"{warehouse.root / 'raw'}: cannot be written ({error})") from error


def copy_digests(record: Publication) -> set[str]:
    """The digests under which the raw store has a publication's own files."""
    return {f"sha256:{file.sha256}" for file in files_of(record.tables)}


def restore_copies(warehouse: Warehouse, record: Publication, building: Path) -> None:
    """Write a publication's files again: those that are whole as they are, others from copies.

    Raises:
        RawStoreError: a copy that is gone or damaged.
    """
    folder = warehouse.folder_of(record.publication_id)
    for file in files_of(record.tables):
        if has_content(folder / file.name, file):
            data = (folder / file.name).read_bytes()
        else:
            data = warehouse.store.get(f"sha256:{file.sha256}")
        (building / file.name).write_bytes(data)


def rows_of_generation(
    folder: Path, generation: Generation, record: Publication, building: Path
) -> dict[str, PublishedTable] | None:
    """Write the rows that one publication has in a generation as files of its own.

    None where a file of the generation that they are in is not whole.
    """
    tables: dict[str, PublishedTable] = {}
    for table in (name for name, published in record.tables.items() if published.rows):
        files = generation.tables[table].files if table in generation.tables else ()
        if not all(is_whole(folder / file.name, file) for file in files):
            return None
        path = building / f"{table}-00000.parquet"
        _write_rows([folder / file.name for file in files], record.publication_id, path)
        tables[table] = PublishedTable(files=(published_file(path),))
        if tables[table].rows != record.tables[table].rows:
            return None
    return tables


def _write_rows(paths: list[Path], publication_id: str, target: Path) -> None:
    schema = pq.read_schema(paths[0])
    fields = [field for field in schema if field.name not in _STAMPS]
    # What the file says of itself goes with its columns.
    own = pa.schema(fields, metadata=schema.metadata)
    with pq.ParquetWriter(target, own, compression="zstd") as writer:
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
                mine = batch.filter(pc.equal(batch["publication_id"], publication_id))
                if mine.num_rows:
                    writer.write_batch(mine.select(own.names))


def files_of(tables: dict[str, PublishedTable]) -> Iterator[PublishedFile]:
    """Every file of some tables."""
    for table in tables.values():
        yield from table.files


def is_whole(path: Path, file: PublishedFile) -> bool:
    """Whether a path is the very file that was published, and no link to it."""
    return not path.is_symlink() and has_content(path, file)


def has_content(path: Path, file: PublishedFile) -> bool:
    """Whether what a path leads to is what was published."""
    try:
        if not path.is_file() or path.stat().st_size != file.size_bytes:
            return False
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError:
        return False
