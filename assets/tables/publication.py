"""Make staged rows a publication: only what is new, in one directory, by one rename.

A staged part whose rows are all new is taken as it is; the new rows of the others are gathered in
one file a table, part by part, so that memory does not grow with the size of an ingestion.
"""

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import resources
from itertools import count
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from assets.tables.chain import Event, add_links, link
from assets.tables.contracts import CONTRACTS, PUBLISHED, STAGED, check_file
from assets.tables.database import create_published_view
from assets.tables.errors import WarehouseError
from assets.tables.failpoints import passing
from assets.tables.losses import expect_whole
from assets.tables.published_copies import keep_copies
from assets.tables.warehouse import (
    Publication,
    PublishedFile,
    PublishedTable,
    Warehouse,
    published_file,
)

_BATCH_ROWS = 50_000
# Tables whose rows are published once more when an earlier revision with them arrives late.
_DATED = frozenset({"operations", "implementations", "runs"})
_MEMORY_LIMIT = "384MB"


class PublicationRequest(BaseModel):
    """What a publication is of."""

    model_config = ConfigDict(frozen=True)

    kind: str
    dataset: str | None = None
    revision: str | None = None
    snapshot_id: str | None = None


def publish(warehouse: Warehouse, staging: Path, request: PublicationRequest) -> Publication | None:
    """Publish the staged rows that no publication has yet; None if there are none.

    `staging` has one folder of Parquet parts per table. Tables are written one after the other
    with bounded memory; the result appears by one rename, or not at all.

    Raises:
        WarehouseError: unwritable warehouse, files of another version, or something that was
            published before is lost.
    """
    with warehouse.locked():
        _remove_leftovers(warehouse)
        chain = expect_whole(warehouse)
        # Not only those that are here: a number is never given twice.
        numbers = [int(name.partition("-")[0]) for name in chain.records]
        sequence = max(numbers, default=0) + 1
        at = datetime.now(UTC).replace(microsecond=0)
        publication_id = f"{sequence:08d}-{at:%Y%m%dT%H%M%SZ}"
        building = warehouse.building_folder(publication_id)
        building.mkdir(parents=True)
        try:
            tables = write_tables(warehouse, staging, building)
            if not tables:
                return None
            record = Publication(
                publication_id=publication_id,
                published_at=at,
                tables=tables,
                previous=chain.end,
                **request.model_dump(),
            )
            keep_copies(warehouse, record, building)
            passing("rows written")
            warehouse.publish_directory(building, record)
            # A process that dies here is made good by the next: it links what is not in the chain.
            add_links(warehouse, chain, [link(Event.PUBLISHED, record=record)])
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return record


def write_tables(warehouse: Warehouse, staging: Path, building: Path) -> dict[str, PublishedTable]:
    """Write the staged rows that the warehouse does not have yet under `building`.

    Raises:
        WarehouseError: files of another version.
    """
    # Logs first: what there is to copy of them is copied while the other tables are looked through.
    staged = {
        table: parts
        for table in sorted(STAGED, key=lambda table: table != "artifacts")
        if (parts := sorted(str(path) for path in (staging / table).glob("*.parquet")))
    }
    written: dict[str, PublishedTable] = {}
    with warehouse.connect(_MEMORY_LIMIT) as connection, ThreadPoolExecutor(1) as ahead:
        # Files are written while the next table is looked through.
        found = ahead.map(
            lambda table: _new_rows(connection.cursor(), warehouse, table, staged), staged
        )
        for table, new_rows in zip(staged, found, strict=True):
            files = tuple(_write_files(table, new_rows, building))
            if files:
                written[table] = PublishedTable(files=files)
    return {table: written[table] for table in STAGED if table in written}


def _remove_leftovers(warehouse: Warehouse) -> None:
    # Under the writer's lock: whatever is half-built belongs to a process that died.
    for folder in warehouse.building_folder("").parent.glob("publication-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _new_rows(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    table: str,
    staged: dict[str, list[str]],
) -> dict[str, pa.Array]:
    """Rows to publish (0-based indices) by staged file.

    A file has its place in `parts` as `file_index`, a virtual column of DuckDB's `read_parquet`
    that takes a tenth of the memory of long file names.
    """
    query = resources.files("sql").joinpath("publication", f"{table}.sql").read_text()
    parts = staged[table]
    new_rows: dict[int, list[pa.Array]] = {}
    for part in parts:
        _expect_contract(table, part)
    try:
        create_published_view(connection, warehouse, table)
        if table in _DATED:
            create_published_view(connection, warehouse, "revisions")
            _staged_revisions(connection, staged).create_view("staged_revisions")
        found = connection.sql(query, params={"staged": parts}).to_arrow_reader(_BATCH_ROWS)
        # In the order of files.
        for batch in found:
            files = pc.run_end_encode(batch["file_index"])
            ends = files.run_ends.to_pylist()
            for index, start, end in zip(files.values.to_pylist(), [0, *ends], ends, strict=False):
                rows = batch["file_row_number"].slice(start, end - start)
                new_rows.setdefault(index, []).append(rows)
    except duckdb.Error as error:
        raise WarehouseError(
            f"{warehouse.root}: table {table} could not be published ({error}); run "
            "`kernelindex doctor`"
        ) from error
    return {parts[index]: pa.concat_arrays(rows) for index, rows in new_rows.items()}


def _staged_revisions(
    connection: duckdb.DuckDBPyConnection, staged: Mapping[str, list[str]]
) -> duckdb.DuckDBPyRelation:
    """The revisions that this publication brings; a rerun brings none."""
    parts = staged.get("revisions")
    if parts:
        return connection.read_parquet(parts)
    return connection.from_arrow(PUBLISHED["revisions"].empty_table())


def _write_files(
    table: str, new_rows: dict[str, pa.Array], building: Path
) -> Iterator[PublishedFile]:
    numbers = count()
    partly_new: dict[str, pa.Array] = {}
    for part, indices in new_rows.items():
        metadata = pq.read_metadata(part)
        if len(indices) < metadata.num_rows:
            partly_new[part] = indices
        else:
            path = building / f"{table}-{next(numbers):05d}.parquet"
            _link(Path(part), path)
            yield published_file(path)
    if partly_new:
        path = building / f"{table}-{next(numbers):05d}.parquet"
        with pq.ParquetWriter(path, STAGED[table], compression="zstd") as writer:
            for part, indices in partly_new.items():
                writer.write_table(pq.ParquetFile(part).read().take(indices))
        yield published_file(path)


def _link(part: Path, path: Path) -> None:
    # A link, not a move: a publication that fails leaves the staged rows for the next try.
    try:
        path.hardlink_to(part)
    except OSError:
        shutil.copyfile(part, path)


def _expect_contract(table: str, part: str) -> None:
    try:
        version = check_file(table, Path(part))
    except WarehouseError as error:
        raise WarehouseError(
            f"{error.message}; remove the staging folder and ingest again"
        ) from error
    if version != CONTRACTS[table].version:
        raise WarehouseError(
            f"{part}: is of version {version} of table {table}, not of "
            f"{CONTRACTS[table].version}; remove the staging folder and ingest again"
        )
