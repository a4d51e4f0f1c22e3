"""Open the database for reading: never blocks a writer, never sees half a build."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Warehouse


@contextmanager
def open_database(warehouse_root: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to the database file as it stands now.

    Raises:
        WarehouseError: where nothing was ingested yet, or the file is damaged.
    """
    path = Warehouse(warehouse_root).database
    if not path.is_file():
        raise WarehouseError(f"{path}: nothing here yet; run `kernelindex ingest` first")
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        raise WarehouseError(
            f"{path}: cannot be opened ({error}); run `kernelindex doctor`"
        ) from error
    try:
        yield connection
    finally:
        connection.close()
