"""Rewrite many small publications into one generation, and remove what nobody reads any more.

A generation appears by one rename and holds every row with the publication that brought it, so
that history, time travel and repair lose nothing. The directories that it replaces stay until
they are old enough and no process reads them: a reader that holds the old list of files keeps
working.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from assets.tables.chain import Event, add_links, link
from assets.tables.contracts import PUBLISHED
from assets.tables.database import published_rows
from assets.tables.errors import WarehouseError
from assets.tables.failpoints import passing
from assets.tables.leases import in_use
from assets.tables.losses import expect_whole
from assets.tables.published_copies import files_of, is_whole
from assets.tables.warehouse import (
    GENERATION_RECORD,
    GENESIS,
    Generation,
    PublishedTable,
    Warehouse,
    flush_to_disk,
    published_file,
)

DEFAULT_KEEP = timedelta(days=7)
_BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Compaction:
    """A new generation: how many publications it holds, and files before and after."""

    generation: Generation
    files_before: int
    files_after: int


@dataclass(frozen=True)
class Removal:
    """Directories that a newer generation replaces: removed, and kept with the reason."""

    removed: tuple[Path, ...]
    kept: tuple[tuple[Path, str], ...]


def compact(warehouse: Warehouse, *, at_least: int = 2) -> Compaction | None:
    """Write all publications into a new generation; None where fewer than `at_least` would join.

    Raises:
        WarehouseError: a published file that is damaged or of another version.
    """
    with warehouse.locked():
        chain = expect_whole(warehouse)
        joining = [record for record in warehouse.uncompacted() if record.publication_id != GENESIS]
        if len(joining) < at_least:
            return None
        files_before = sum(len(warehouse.files(table)) for table in PUBLISHED)
        generation = write_generation(warehouse)
        add_links(warehouse, chain, [link(Event.COMPACTED, generation=generation)])
        return Compaction(
            generation,
            files_before,
            sum(len(warehouse.files(table)) for table in PUBLISHED),
        )


def write_generation(warehouse: Warehouse, number: int | None = None) -> Generation:
    """Write every row that the warehouse has now as a generation; the writer's lock is held.

    `number` takes the place of a generation instead of adding one.

    Raises:
        OtherVersionError: a published file that only another version of this program can read.
        WarehouseError: a published file that is damaged.
    """
    if number is None:
        number = max(warehouse.generation_numbers(), default=0) + 1
    building = warehouse.building_folder(f"generation-{number:08d}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        tables = {
            table: PublishedTable(files=(published_file(path),))
            for table in PUBLISHED
            if (path := _write_table(warehouse, table, building)) is not None
        }
        generation = Generation(
            number=number,
            created_at=datetime.now(UTC).replace(microsecond=0),
            publications=tuple(
                record for record in warehouse.publications() if record.publication_id != GENESIS
            ),
            tables=tables,
        )
        _check_rows(generation)
        (building / GENERATION_RECORD).write_text(generation.model_dump_json(indent=2) + "\n")
        for path in building.iterdir():
            flush_to_disk(path)
        flush_to_disk(building)
        warehouse.generations_folder.mkdir(exist_ok=True)
        passing("generation built")
        folder = warehouse.folder_of_generation(number)
        if folder.exists() or folder.is_symlink():
            # Whoever gives a number sees to it that every publication has a directory of its own.
            warehouse.put_aside(folder)
            passing("generation put aside")
        building.rename(folder)
        flush_to_disk(warehouse.generations_folder)
        passing("generation renamed")
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return generation


def _write_table(warehouse: Warehouse, table: str, building: Path) -> Path | None:
    path = building / f"{table}-00000.parquet"
    written = 0
    with (
        warehouse.connect() as connection,
        pq.ParquetWriter(path, PUBLISHED[table], compression="zstd") as writer,
    ):
        # The order of the files is the order of publication: a reader of one publication skips
        # the row groups of the others.
        rows = published_rows(connection, warehouse, table)
        columns = ", ".join(f'"{name}"' for name in PUBLISHED[table].names)
        for batch in rows.project(columns).to_arrow_reader(_BATCH_ROWS):
            writer.write_batch(batch.cast(PUBLISHED[table]))
            written += batch.num_rows
    if written == 0:
        path.unlink()
        return None
    return path


def _check_rows(generation: Generation) -> None:
    for table in PUBLISHED:
        expected = sum(
            record.tables[table].rows
            for record in generation.publications
            if table in record.tables
        )
        written = generation.tables[table].rows if table in generation.tables else 0
        if written != expected:
            raise WarehouseError(
                f"table {table}: {written} rows were rewritten, the publications have {expected}; "
                "nothing was compacted, run `kernelindex doctor`"
            )


def remove_replaced(
    warehouse: Warehouse,
    keep: timedelta = DEFAULT_KEEP,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Removal:
    """Remove what the newest generation replaces once that is older than `keep` and unused.

    Raises:
        WarehouseError: the newest generation is damaged, so that nothing may go.
    """
    removed: list[Path] = []
    kept: list[tuple[Path, str]] = []
    with warehouse.locked():
        generation = warehouse.generation()
        if generation is None:
            return Removal((), ())
        due_at = generation.created_at + keep
        replaced = list(_replaced(warehouse, generation))
        if replaced and now() >= due_at:
            _expect_whole_files(warehouse, generation)
        for folder in replaced:
            if now() < due_at:
                kept.append((folder, f"until {due_at:%Y-%m-%d %H:%M} UTC"))
            elif in_use(folder):
                kept.append((folder, "a process is reading it"))
            else:
                # Renamed first: a removal that dies half-way leaves no half publication.
                leaving = warehouse.building_folder(f"removed-{folder.name}")
                shutil.rmtree(leaving, ignore_errors=True)
                folder.rename(leaving)
                passing("replaced folder renamed")
                shutil.rmtree(leaving)
                removed.append(folder)
    return Removal(tuple(removed), tuple(kept))


def _expect_whole_files(warehouse: Warehouse, generation: Generation) -> None:
    folder = warehouse.folder_of_generation(generation.number)
    for file in files_of(generation.tables):
        if not is_whole(folder / file.name, file):
            raise WarehouseError(
                f"{folder / file.name}: is damaged, so nothing that it replaces was removed; run "
                "`kernelindex doctor --repair`"
            )


def _replaced(warehouse: Warehouse, generation: Generation) -> Iterator[Path]:
    folders = set(warehouse.publication_folders())
    for record in generation.publications:
        if record.publication_id in folders and record.publication_id != GENESIS:
            yield warehouse.folder_of(record.publication_id)
    for number in warehouse.generation_numbers():
        if number < generation.number:
            yield warehouse.folder_of_generation(number)
