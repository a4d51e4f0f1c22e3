"""Open the database for reading: never blocks a writer, never sees half a build.

A reader can read the tables and nothing else: no file, no network, no extension. A query may use
`QUERY_MEMORY` and then a folder of its own, which goes away with the connection.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Warehouse

QUERY_MEMORY = "2GB"
_QUERY_DISK = "16GB"
_LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": QUERY_MEMORY,
    "max_temp_directory_size": _QUERY_DISK,
    "lock_configuration": "true",
}


_HOLDER = re.compile(r"[Ll]ock is held in (?P<program>.*?) ?\(PID (?P<pid>\d+)\)")


def unopened(path: Path, error: duckdb.Error) -> WarehouseError:
    """Why DuckDB cannot open a database file, and what to do about it.

    A file that another process writes to is whole; to build it anew would help nobody.
    """
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    if "could not set lock on file" in first_line.lower():
        holder = _HOLDER.search(str(error))
        who = f"process {holder['pid']} ({holder['program']})" if holder else "another process"
        return WarehouseError(
            f"{path}: {who} has it open for writing; wait until that ends, or close it there "
            "(kernelindex itself never opens it for writing)"
        )
    if "permission denied" in first_line.lower():
        return WarehouseError(f"{path}: may not be read by this user ({first_line})")
    return WarehouseError(
        f"{path}: cannot be opened ({first_line}); `kernelindex doctor --repair` builds it anew"
    )


@contextmanager
def open_database(warehouse_root: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to the database file as it stands now.

    Raises:
        WarehouseError: where nothing was ingested yet, or the file is damaged.
    """
    with open_database_file(Warehouse(warehouse_root).database) as connection:
        yield connection


@contextmanager
def open_database_file(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to one database file.

    Raises:
        WarehouseError: where there is no file, or it is damaged.
    """
    if not path.is_file():
        raise WarehouseError(f"{path}: nothing here yet; run `kernelindex ingest` first")
    # DuckDB lets queries read and write files where it may put its own: nobody else's folder.
    with tempfile.TemporaryDirectory(prefix="kernelindex-query-") as own_folder:
        settings = {**_LOCKED_DOWN, "temp_directory": own_folder}
        try:
            connection = duckdb.connect(str(path), read_only=True, config=settings)
        except duckdb.Error as error:
            raise unopened(path, error) from error
        try:
            yield connection
        finally:
            connection.close()
