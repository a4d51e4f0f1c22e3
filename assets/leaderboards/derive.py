"""Run some of the files under `sql/` in an open DuckDB whose tables stand in for those they read.

For rankings over rows that are in no warehouse: a downloaded catalog, test vectors. The database
of a warehouse is made by `build.py`.
"""

from collections.abc import Iterable

import duckdb

from assets.leaderboards.catalog import SqlTable, sql_catalog


def derive(
    connection: duckdb.DuckDBPyConnection,
    wanted: Iterable[str],
    given: Iterable[str],
    catalog: tuple[SqlTable, ...] | None = None,
) -> list[str]:
    """Make the wanted tables, and first what they read except for the given ones.

    Returns:
        The names of the tables that were made, in that order.

    Raises:
        KeyError: a table that no file makes and that is not given.
        duckdb.Error: a given table without a column that a file reads.
    """
    tables = sql_catalog() if catalog is None else catalog
    by_name = {table.name: table for table in tables}
    needed, present = set(wanted), set(given)
    waiting = list(needed)
    while waiting:
        for name in by_name[waiting.pop()].reads:
            if name not in needed and name not in present:
                needed.add(name)
                waiting.append(name)
    made = [table for table in tables if table.name in needed]
    for table in made:
        connection.sql(table.file.text).create(table.name)
    return [table.name for table in made]
