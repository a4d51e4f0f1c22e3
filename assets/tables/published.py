"""The database together with published files, which hold what is too large to be stored twice.

Manifests of runs and the content of artifacts are in the Parquet files only. People's own
statements go through `reader.py`, which lets them read the tables and nothing else.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb

from assets.tables.database import create_published_view
from assets.tables.errors import WarehouseError
from assets.tables.leases import reading
from assets.tables.reader import unopened
from assets.tables.warehouse import Warehouse

_MEMORY_LIMIT = "2GB"


@contextmanager
def open_with_published(
    warehouse: Warehouse, published: Iterable[str]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database with some published tables beside it, as `published_<table>`.

    The published files stay where they are until the block ends. Only for statements of this
    project: the connection may read any file.

    Raises:
        WarehouseError: where nothing was ingested yet, or the file is damaged.
    """
    if not warehouse.database.is_file():
        raise WarehouseError(f"{warehouse.database}: nothing here yet; run `kernelindex ingest`")
    with reading(warehouse), warehouse.connect(_MEMORY_LIMIT) as connection:
        for table in published:
            create_published_view(connection, warehouse, table)
        try:
            connection.execute(
                "attach $path as kernelindex (read_only)", {"path": str(warehouse.database)}
            )
        except duckdb.Error as error:
            raise unopened(warehouse.database, error) from error
        use_published(connection)
        yield connection


def use_published(connection: duckdb.DuckDBPyConnection) -> None:
    """Find names in the database first, then among the published tables; cursors forget this."""
    connection.execute("set search_path = 'kernelindex.main,memory.main'")
