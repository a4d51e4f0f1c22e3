"""Examine what published rows say: digests, references, groups, licences, counts.

Each file of `sql/checks/` selects rows that break one rule. Files that cannot be read are the
business of `integrity.py`.
"""

from importlib import resources

import duckdb

from assets.tables.contracts import PUBLISHED
from assets.tables.database import create_published_view, published_rows
from assets.tables.findings import Examination, Fault, Finding, Level
from assets.tables.warehouse import Warehouse

CHECKS = {
    Fault.WRONG_DIGEST: "wrong_digest",
    Fault.WRONG_COLUMN: "wrong_column",
    Fault.BROKEN_REFERENCE: "broken_reference",
    Fault.MIXED_GROUP: "mixed_group",
    Fault.UNCONCLUDED_LICENSE: "unconcluded_license",
}
"""The file under `sql/checks/` of each rule."""

OF_ONE_ROW = frozenset({Fault.WRONG_DIGEST, Fault.WRONG_COLUMN})
"""Rules that a row keeps or breaks on its own, so that new rows can be checked alone."""

_MEMORY_LIMIT = "2GB"
_EXAMPLES = 3


def broken_rule(warehouse: Warehouse, fault: Fault, publication_id: str | None) -> list[Finding]:
    """Check one rule, over the rows of one publication where the rule allows that.

    Raises:
        duckdb.Error: a published file that cannot be read.
    """
    with warehouse.connect(_MEMORY_LIMIT) as connection:
        for table in PUBLISHED:
            rows = published_rows(connection, warehouse, table)
            if publication_id is not None and fault in OF_ONE_ROW:
                column = duckdb.ColumnExpression("publication_id")
                rows = rows.filter(column == duckdb.ConstantExpression(publication_id))
            rows.create_view(f"published_{table}")
        return _broken(connection, fault, CHECKS[fault])


def examine_rows(warehouse: Warehouse) -> Examination:
    """Check every published row against the rules of `sql/checks/`, and counts against records.

    Raises:
        duckdb.Error: a published file that cannot be read.
    """
    found = Examination()
    with warehouse.connect(_MEMORY_LIMIT) as connection:
        for table in PUBLISHED:
            create_published_view(connection, warehouse, table)
        for fault, name in CHECKS.items():
            found.count("rules")
            found.findings += _broken(connection, fault, name)
        found.findings += _counts(connection, warehouse, found)
    return found


def _broken(connection: duckdb.DuckDBPyConnection, fault: Fault, name: str) -> list[Finding]:
    query = resources.files("sql").joinpath("checks", f"{name}.sql").read_text()
    rows = connection.sql(query).aggregate(
        f"place, count(*) as number, list(example order by example)[1:{_EXAMPLES}] as examples",
        "place",
    )
    return [
        Finding(
            fault,
            Level.ERROR,
            str(place),
            f"{fault.explanation.removesuffix('.')} (sql/checks/{name}.sql)",
            count=int(number),
            examples=tuple(str(example) for example in examples),
        )
        for place, number, examples in sorted(rows.fetchall())
    ]


def _counts(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, found: Examination
) -> list[Finding]:
    """Rows by table and publication, as the records say and as they are."""
    expected = {
        (table, record.publication_id): published.rows
        for record in warehouse.publications()
        for table, published in record.tables.items()
        if published.rows
    }
    actual: dict[tuple[str, str], int] = {}
    for table in PUBLISHED:
        by_publication = connection.table(f"published_{table}").aggregate(
            "publication_id, count(*) as number", "publication_id"
        )
        for publication_id, number in by_publication.fetchall():
            actual[table, str(publication_id)] = int(number)
            found.count("rows", int(number))
    return [
        Finding(
            Fault.ROW_COUNT,
            Level.ERROR,
            f"{table} of publication {publication_id}",
            f"{actual.get((table, publication_id), 0)} rows, the record says "
            f"{expected.get((table, publication_id), 0)}",
        )
        for table, publication_id in sorted(expected.keys() | actual.keys())
        if expected.get((table, publication_id), 0) != actual.get((table, publication_id), 0)
    ]
