"""Build the database: every file under `sql/` becomes a table, checked against its own header.

All of it happens in one new file that is swapped in only when no assertion of severity error
failed and no key occurs twice; until then, and after a failure, people see the old database.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp

from assets.leaderboards.catalog import SqlTable, sql_catalog
from assets.leaderboards.sql_file import DIALECT, Assertion, Severity
from assets.tables.database import DatabaseBuild, building
from assets.tables.errors import WarehouseError
from assets.tables.set_aside import SetAside
from assets.tables.warehouse import Warehouse

UNIQUE_KEY = "unique_key"
_EXAMPLES = 3
_SAMPLE_ROWS = 5

Row = tuple[object, ...]


@dataclass(frozen=True)
class BuiltColumn:
    """A column of a built table; `type` is DuckDB's."""

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class CheckOutcome:
    """What came of one assertion, or of the key; `examples` are up to 3 keys that fail."""

    name: str
    expression: str
    severity: Severity
    failing: int
    examples: tuple[Row, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it holds for every row."""
        return self.failing == 0


@dataclass(frozen=True)
class TableOutcome:
    """A built table; of a view no rows are read, so it has no count, no checks and no sample."""

    table: SqlTable
    rows: int | None
    columns: tuple[BuiltColumn, ...]
    checks: tuple[CheckOutcome, ...]
    sample: tuple[Row, ...]
    seconds: float

    @property
    def failures(self) -> tuple[CheckOutcome, ...]:
        """The checks that keep the database from being swapped in."""
        return tuple(
            check for check in self.checks if not check.passed and check.severity is Severity.ERROR
        )


@dataclass
class DatabaseOutcome:
    """A built database, table by table in the order in which they were made."""

    path: Path
    tables: list[TableOutcome] = field(default_factory=list)
    size_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is: `name` is the table that was just made."""

    done: int
    total: int
    name: str
    rows: int | None


Progress = Callable[[BuildProgress], None]


class FailedStatementError(WarehouseError):
    """A statement that does not run; `path` is its file, `cause` what DuckDB says."""

    def __init__(self, path: str, cause: Exception) -> None:
        super().__init__(f"{path}: {cause}")
        self.path = path
        self.cause = cause


class BrokenContractError(WarehouseError):
    """Tables that are not what their headers promise; the old database is still in place."""

    def __init__(self, outcome: DatabaseOutcome) -> None:
        self.reasons = [
            _failure(table, check) for table in outcome.tables for check in table.failures
        ]
        left = f"{outcome.path} was left as it was; correct the rows or the file"
        super().__init__("\n".join([*self.reasons, left]))
        self.outcome = outcome


def build_database(
    warehouse: Warehouse,
    progress: Progress | None = None,
    catalog: tuple[SqlTable, ...] | None = None,
    omitted: Mapping[str, SetAside] | None = None,
) -> DatabaseOutcome:
    """Build every table of the catalog (default: the project's files) and swap the database in.

    `omitted` are the publications that it is built without, by default those that are set aside.
    A publication that breaks the build is only named; `index.py` finds a way without it.

    Raises:
        WarehouseError: a warehouse that cannot be used.
        FailedStatementError: a statement that does not run; nothing was swapped.
        BrokenContractError: failed assertions or duplicate keys; nothing was swapped.
    """
    tables = sql_catalog() if catalog is None else catalog
    outcome = DatabaseOutcome(warehouse.database)
    started = time.monotonic()
    with building(warehouse, omitted) as build:
        for number, table in enumerate(tables, start=1):
            built = build_table(build, table)
            outcome.tables.append(built)
            if progress is not None:
                progress(BuildProgress(number, len(tables), table.name, built.rows))
        if any(built.failures for built in outcome.tables):
            raise BrokenContractError(outcome)
    outcome.size_bytes = warehouse.database.stat().st_size
    outcome.seconds = time.monotonic() - started
    return outcome


def build_table(build: DatabaseBuild, table: SqlTable) -> TableOutcome:
    """Make one table or view and check it against its header.

    Raises:
        FailedStatementError: a statement that does not run.
    """
    try:
        return _build_table(build, table)
    except duckdb.Error as error:
        raise FailedStatementError(table.file.path, error) from error


def _build_table(build: DatabaseBuild, table: SqlTable) -> TableOutcome:
    started = time.monotonic()
    file = table.file
    rows: int | None = None
    if file.is_view:
        build.create_view(table.name, file.text)
    else:
        rows = build.create(table.name, file.text, file.uncompressed)
    texts = {column.name: column.text for column in file.columns}
    build.comment(table.name, file.documentation, texts, view=file.is_view)
    columns = tuple(
        BuiltColumn(name, kind, texts[name]) for name, kind in build.columns(table.name)
    )
    checks: tuple[CheckOutcome, ...] = ()
    sample: tuple[Row, ...] = ()
    if not file.is_view:
        checks = (_check_key(build, table), *_check_assertions(build, table))
        sample = tuple(build.query(exp.select("*").from_(_quoted(table.name)).limit(_SAMPLE_ROWS)))
    return TableOutcome(table, rows, columns, checks, sample, time.monotonic() - started)


def _check_key(build: DatabaseBuild, table: SqlTable) -> CheckOutcome:
    file = table.file
    key = [_quoted_column(name) for name in file.key]
    columns = ", ".join(file.key)
    if _has_unique_hashes(build, file.name, key):
        return CheckOutcome(UNIQUE_KEY, columns, Severity.ERROR, 0)
    repeated = (
        exp.select(*key)
        .from_(_quoted(file.name))
        .group_by(*(column.copy() for column in key))
        .having("count(*) > 1")
    )
    [(failing,)] = build.query(exp.select("count(*)").from_(repeated.subquery("repeated")))
    examples = tuple(build.query(repeated.limit(_EXAMPLES))) if failing else ()
    return CheckOutcome(UNIQUE_KEY, columns, Severity.ERROR, int(str(failing)), examples)


def _has_unique_hashes(build: DatabaseBuild, table: str, key: list[exp.Column]) -> bool:
    """Whether no two keys have one 64-bit hash, which proves that no two are equal.

    The reverse does not hold, so that the keys themselves are looked at where this is false; where
    it is true, many million digests of 71 characters never are in memory together. Hashes are
    sorted, equal ones then lie beside each other: that takes a quarter of the time of a `group by`.
    """
    digest = exp.func("hash", *(column.copy() for column in key))
    hashes = build.hashes(exp.select(digest).from_(_quoted(table)))
    hashes.sort()
    return not bool((hashes[1:] == hashes[:-1]).any())


def _check_assertions(build: DatabaseBuild, table: SqlTable) -> list[CheckOutcome]:
    # All in one pass: a table of many million rows is read once, not once per assertion.
    file = table.file
    if not file.assertions:
        return []
    counts = exp.select(
        *(
            exp.Sum(this=exp.cast(_fails(assertion), "bigint")).as_(assertion.name)
            for assertion in file.assertions
        )
    ).from_(_quoted(file.name))
    [row] = build.query(counts)
    return [
        CheckOutcome(
            assertion.name,
            assertion.expression,
            assertion.severity,
            failing := int(str(count or 0)),
            _failing_keys(build, table, assertion) if failing else (),
        )
        for assertion, count in zip(file.assertions, row, strict=True)
    ]


def _failing_keys(build: DatabaseBuild, table: SqlTable, assertion: Assertion) -> tuple[Row, ...]:
    file = table.file
    query = (
        exp.select(*map(_quoted_column, file.key))
        .from_(_quoted(file.name))
        .where(_fails(assertion))
        .limit(_EXAMPLES)
    )
    return tuple(build.query(query))


def _fails(assertion: Assertion) -> exp.Expression:
    # An assertion that is neither true nor false was not kept.
    condition = sqlglot.parse_one(assertion.expression, read=DIALECT)
    return exp.Not(this=exp.Coalesce(this=condition, expressions=[exp.false()]))


def _quoted(table: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(table, quoted=True))


def _quoted_column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _failure(built: TableOutcome, check: CheckOutcome) -> str:
    file = built.table.file
    examples = "; ".join(
        ", ".join(f"{name}={value}" for name, value in zip(file.key, row, strict=True))
        for row in check.examples
    )
    if check.name == UNIQUE_KEY:
        what = f"key ({check.expression}) occurs more than once for {check.failing} keys"
    else:
        what = f"assertion {check.name} ({check.expression}) fails for {check.failing} rows"
    return f"{file.path}: {what}, e.g. {examples}"
