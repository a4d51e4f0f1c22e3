"""Examine the database: does it open, is it current, and do the files give the same tables?

Every table is built once more beside the database and compared with it row by row, to the last
bit: no statement may depend on the order in which DuckDB's threads meet the rows. And what was
published is counted against what is shown: nothing that anybody may cite is without an answer.
"""

import os
import shutil
from collections.abc import Collection, Sequence
from importlib import resources

import duckdb

from assets.leaderboards.build import build_database
from assets.leaderboards.catalog import SqlTable, sql_catalog
from assets.tables.errors import WarehouseError
from assets.tables.findings import Examination, Fault, Finding, Level
from assets.tables.published import open_with_published
from assets.tables.reader import open_database
from assets.tables.set_aside import set_aside
from assets.tables.time_travel import WarehouseAsOf
from assets.tables.warehouse import Warehouse


def examine_database(warehouse: Warehouse, *, rebuild: bool = True) -> Examination:
    """Look at the database file; with `rebuild`, compare it with what the files give.

    Raises:
        WarehouseError: published files that cannot be read.
    """
    found = Examination()
    aside = set_aside(warehouse)
    published = [
        record.publication_id
        for record in warehouse.publications()
        if record.publication_id not in aside
    ]
    try:
        with open_database(warehouse.root) as connection:
            rows = connection.sql("select publication_id from publications").fetchall()
            columns = connection.sql(
                "select table_name, list(column_name order by column_index) "
                "from duckdb_columns() where database_name = current_database() group by all"
            ).fetchall()
    except (WarehouseError, duckdb.Error) as error:
        first_line = str(error).splitlines()[0]
        found.findings.append(
            Finding(Fault.NO_DATABASE, Level.ERROR, str(warehouse.database), first_line)
        )
        return found
    tables = dict(columns)
    found.count("tables", len(tables))
    built_from = {publication_id for (publication_id,) in rows}
    absent = [publication_id for publication_id in published if publication_id not in built_from]
    if absent:
        found.findings.append(
            Finding(
                Fault.OLD_DATABASE,
                Level.ERROR,
                str(warehouse.database),
                "publications that it was built before",
                count=len(absent),
                examples=tuple(absent[:3]),
            )
        )
        return found
    surplus = sorted(built_from - set(published))
    if surplus:
        found.findings.append(
            Finding(
                Fault.OLD_DATABASE,
                Level.ERROR,
                str(warehouse.database),
                _why_surplus(surplus, aside),
                count=len(surplus),
                examples=tuple(str(name) for name in surplus[:3]),
            )
        )
        return found
    missing = [
        table.name
        for table in sql_catalog()
        if tables.get(table.name) != [column.name for column in table.file.columns]
    ]
    if missing:
        found.findings.append(
            Finding(
                Fault.OLD_DATABASE,
                Level.ERROR,
                str(warehouse.database),
                "tables of this version that it does not have, or not with their columns",
                count=len(missing),
                examples=tuple(missing[:3]),
            )
        )
    elif rebuild:
        found.findings += _differences(warehouse)
        if not aside:  # else what is left out is known, and said
            _count_shown(warehouse, found)
    return found


def _why_surplus(surplus: Sequence[str], aside: Collection[str]) -> str:
    if all(name in aside for name in surplus):
        return "publications in it that were set aside since"
    return "publications that it was built from and that are not here"


def _count_shown(warehouse: Warehouse, found: Examination) -> None:
    """Count what was published against what is shown."""
    query = resources.files("sql").joinpath("checks", "vanished_digest.sql").read_text()
    tables = ("runs", "implementations", "operations", "workloads")
    with open_with_published(warehouse, tables) as connection:
        rows = connection.sql(query).fetchall()
    for place, published, shown, stood_for, vanished, examples in rows:
        if place == "runs":
            found.count("published runs", published)
            found.count("shown runs", shown)
            found.count("runs that others stand for", stood_for)
        if vanished:
            found.findings.append(
                Finding(
                    Fault.VANISHED,
                    Level.ERROR,
                    place,
                    "were published, and the database answers to neither them nor what stands "
                    "for them (sql/checks/vanished_digest.sql)",
                    count=vanished,
                    examples=tuple(examples),
                )
            )


def _differences(warehouse: Warehouse) -> list[Finding]:
    newest = warehouse.publications()[-1].publication_id
    folder = warehouse.staging(f"doctor-{os.getpid()}")
    try:
        again = WarehouseAsOf(warehouse, newest, "doctor")
        again.database = folder / "again.duckdb"
        build_database(again)
        with warehouse.connect("4GB") as connection:
            for name, path in (("published", warehouse.database), ("again", again.database)):
                connection.execute(f"attach $path as {name} (read_only)", {"path": str(path)})
            found = [_difference(connection, table) for table in sql_catalog()]
            connection.execute("detach published")
            connection.execute("detach again")
    finally:
        shutil.rmtree(folder)
    return [finding for finding in found if finding is not None]


def _difference(connection: duckdb.DuckDBPyConnection, table: SqlTable) -> Finding | None:
    columns = ", ".join(f'"{column.name}"' for column in table.file.columns)
    query = f"""
        select
            (select count(*) from (
                select {columns} from published."{table.name}"
                except all
                select {columns} from again."{table.name}"
            )),
            (select count(*) from (
                select {columns} from again."{table.name}"
                except all
                select {columns} from published."{table.name}"
            ))
    """
    try:
        [(surplus, absent)] = connection.sql(query).fetchall()
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        return Finding(Fault.WRONG_TABLE, Level.ERROR, table.name, first_line)
    if not surplus and not absent:
        return None
    return Finding(
        Fault.WRONG_TABLE,
        Level.ERROR,
        table.name,
        f"{surplus} rows that the files do not give, {absent} that are absent",
        count=int(surplus + absent),
    )
