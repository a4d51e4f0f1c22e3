"""Make staged rows a publication: only what is new, in one directory, by one rename."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from assets.tables.contracts import PUBLICATION_COLUMNS, PUBLISHED, STAGED
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
        stamp = _Stamp(publication_id, at)
        building = warehouse.publications_folder / f".{publication_id}.tmp"
        _remove_leftovers(warehouse)
        building.mkdir()
        try:
            tables = {
                table: written
                for table in STAGED
                if (written := _write_new_rows(warehouse, table, staging, building, stamp))
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


@dataclass(frozen=True)
class _Stamp:
    """The columns that publication adds to a row."""

    publication_id: str
    at: datetime

    def on(self, rows: pa.Table) -> pa.Table:
        """The rows with those columns."""
        values = {"publication_id": self.publication_id, "published_at": self.at}
        for name, kind in PUBLICATION_COLUMNS:
            value = values[name]
            scalar = value.replace(tzinfo=None) if isinstance(value, datetime) else value
            rows = rows.append_column(name, pa.repeat(pa.scalar(scalar, kind), rows.num_rows))
        return rows


def _remove_leftovers(warehouse: Warehouse) -> None:
    # Under the writer's lock: whatever is half-built belongs to a process that died.
    for folder in warehouse.publications_folder.glob(".*.tmp"):
        shutil.rmtree(folder, ignore_errors=True)


def _write_new_rows(
    warehouse: Warehouse,
    table: str,
    staging: Path,
    building: Path,
    stamp: _Stamp,
) -> TableFile | None:
    parts = sorted(str(path) for path in (staging / table).glob("*.parquet"))
    if not parts:
        return None
    new_rows = _new_rows(warehouse, table, parts)
    if not new_rows:
        return None
    path = building / f"{table}.parquet"
    written = 0
    with pq.ParquetWriter(path, PUBLISHED[table], compression="zstd") as writer:
        # One part at a time, so that memory does not grow with the size of an ingestion.
        for part, indices in new_rows.items():
            rows = pq.read_table(part)
            if len(indices) < rows.num_rows:
                rows = rows.take(indices)
            writer.write_table(stamp.on(rows))
            written += rows.num_rows
    return table_file(path, rows=written)


def _new_rows(warehouse: Warehouse, table: str, parts: list[str]) -> dict[str, pa.Array]:
    """Rows to publish by staged file."""
    query = resources.files("sql").joinpath("publication", f"{table}.sql").read_text()
    try:
        with warehouse.connect() as connection:
            found = connection.sql(
                query, params={"staged": parts, "published": warehouse.files(table)}
            ).to_arrow_table()
    except duckdb.Error as error:
        raise WarehouseError(
            f"{warehouse.root}: table {table} could not be published ({error}); run "
            "`kernelindex doctor`"
        ) from error
    files = found["filename"].combine_chunks().dictionary_encode()
    by_file: dict[str, pa.Array] = {}
    for code, name in enumerate(files.dictionary.to_pylist()):
        mask = pc.equal(files.indices, code)
        by_file[name] = found["file_row_number"].combine_chunks().filter(mask)
    return by_file
