"""Make staged rows a publication: only what is new, in one directory, by one rename."""

import shutil
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from assets.tables.contracts import PUBLISHED, STAGED
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Publication, TableFile, Warehouse, table_file


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
        WarehouseError: unwritable warehouse, files of another version.
    """
    with warehouse.locked():
        earlier = warehouse.publications()
        sequence = earlier[-1].sequence + 1
        at = datetime.now(UTC)
        publication_id = f"{sequence:08d}-{at:%Y%m%dT%H%M%SZ}"
        building = warehouse.publications_folder / f".{publication_id}.tmp"
        _remove_leftovers(warehouse)
        building.mkdir()
        try:
            tables = {
                table: written
                for table in STAGED
                if (
                    written := _write_new_rows(
                        warehouse, table, staging, building, publication_id, at
                    )
                )
            }
            if not tables:
                building.rmdir()
                return None
            record = Publication(
                publication_id=publication_id,
                published_at=at,
                tables=tables,
                **request.model_dump(),
            )
            warehouse.publish_directory(building, record)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
    return record


def _remove_leftovers(warehouse: Warehouse) -> None:
    # Under the writer's lock: whatever is half-built belongs to a process that died.
    for folder in warehouse.publications_folder.glob(".*.tmp"):
        shutil.rmtree(folder, ignore_errors=True)


def _write_new_rows(
    warehouse: Warehouse,
    table: str,
    staging: Path,
    building: Path,
    publication_id: str,
    at: datetime,
) -> TableFile | None:
    parts = sorted(str(path) for path in (staging / table).glob("*.parquet"))
    if not parts:
        return None
    query = resources.files("sql").joinpath("publication", f"{table}.sql").read_text()
    unsorted = building / f"{table}.parquet"
    try:
        with warehouse.connect() as connection:
            connection.sql(
                query,
                params={
                    "staged": parts,
                    "published": warehouse.files(table),
                    "publication_id": publication_id,
                    "published_at": at.replace(tzinfo=None),
                },
            ).write_parquet(str(unsorted), compression="zstd")
    except duckdb.Error as error:
        raise WarehouseError(
            f"{warehouse.root}: table {table} could not be published ({error}); run "
            "`kernelindex doctor`"
        ) from error
    rows = pq.read_metadata(unsorted).num_rows
    if rows == 0:
        unsorted.unlink()
        return None
    _expect_contract(table, unsorted)
    return table_file(unsorted, rows=rows)


def _expect_contract(table: str, path: Path) -> None:
    found = pq.read_schema(path).names
    expected = PUBLISHED[table].names
    if found != expected:
        raise WarehouseError(f"{path}: table {table} has columns {found}, expected {expected}")
