"""Open the index for a command: the settings, the database, and errors as one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import duckdb
import pyarrow as pa
import typer

from assets.answers.errors import NoAnswerError, QueryError
from assets.answers.lookup import operation_names
from assets.tables.errors import WarehouseError
from assets.tables.reader import open_database, open_database_file
from assets.tables.warehouse import Warehouse
from assets.traces.errors import DatasetError
from pipelines.commands.output import fail, no
from pipelines.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="print JSON alone on stdout")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="print characters that cannot be seen as they are, in a terminal too"
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="PUBLICATION",
        help="answer as the index stood after this publication (identifier or number)",
    ),
]


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """Turn the errors that people can do something about into one line and an exit code."""
    try:
        yield
    except NoAnswerError as error:
        no(error.message, error.candidates)
    except (WarehouseError, QueryError, DatasetError) as error:
        fail(error.message)
    except OSError as error:
        fail(f"{error.filename or 'the disk'}: {error.strerror or error}")
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        # Only statements of our own come here: the tables are not those that they were written for.
        fail(
            f"the database is not of this version ({str(error).splitlines()[0]}); "
            "`kernelindex doctor --repair` builds it anew"
        )
    except duckdb.OutOfMemoryException as error:
        fail(f"too large for the memory that is allowed: {str(error).splitlines()[0]}")
    except (duckdb.Error, pa.ArrowException) as error:
        # What was asked is right by now, so what was read is not.
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        fail(f"{first_line}; `kernelindex doctor --repair` builds the database anew")


def open_warehouse() -> Warehouse:
    """The warehouse of this deployment, which something was published to.

    Raises:
        WarehouseError: nothing was ingested yet.
    """
    warehouse = Warehouse(Settings.from_environment().warehouse)
    if warehouse.root.exists() and not warehouse.root.is_dir():
        raise WarehouseError(f"{warehouse.root}: is no folder; name one with KERNELINDEX_WAREHOUSE")
    if not warehouse.publications_folder.is_dir():
        raise WarehouseError(f"{warehouse.root}: nothing here yet; run `kernelindex ingest` first")
    return warehouse


@contextmanager
def open_index(as_of: str | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database, as it stands or as it stood; errors end the command."""
    with errors_as_lines():
        warehouse = open_warehouse()
        if as_of is None:
            with open_database(warehouse.root) as connection:
                yield connection
        else:
            from assets.leaderboards.history import database_as_of

            with open_database_file(database_as_of(warehouse, as_of)) as connection:
                yield connection


def complete_operation(incomplete: str) -> list[str]:
    """Names of operations that begin like this, for the shell."""
    try:
        with open_database(Settings.from_environment().warehouse) as connection:
            return [name for name in operation_names(connection) if name.startswith(incomplete)]
    except WarehouseError:
        return []


def complete_gpu(incomplete: str) -> list[str]:
    """Names of devices that begin like this, for the shell."""
    try:
        with open_database(Settings.from_environment().warehouse) as connection:
            rows = connection.execute(
                "select distinct gpu_product from environments order by all"
            ).fetchall()
    except WarehouseError:
        return []
    return [name for (name,) in rows if name.lower().startswith(incomplete.lower())]
