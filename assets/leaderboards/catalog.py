"""All files under `sql/` together: references, order, columns, and where each column comes from.

Everything here is worked out from the text with sqlglot, so a wrong reference, a cycle or a
header that lies fails when the code is loaded, not when the database is built.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import resources
from importlib.resources.abc import Traversable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope, traverse_scope

from assets.leaderboards.sql_file import (
    DIALECT,
    SqlContractError,
    SqlFile,
    error_line,
    first_line,
    read_sql_file,
)
from assets.tables.contracts import LEFT_OUT, PUBLICATIONS, PUBLISHED

FOLDERS = ("tables", "rankings", "leaderboards", "views")
PUBLISHED_PREFIX = "published_"

Columns = Mapping[str, tuple[str, ...]]
"""Column names by table."""


@dataclass(frozen=True)
class ColumnSource:
    """A column that another column is made from."""

    table: str
    column: str


@dataclass(frozen=True)
class SqlTable:
    """A file, the tables that it reads (sorted), and its SELECT with every name resolved."""

    file: SqlFile
    reads: tuple[str, ...]
    qualified: exp.Query

    @property
    def name(self) -> str:
        """The table's name."""
        return self.file.name

    def lineage(self) -> dict[str, list[ColumnSource]]:
        """Which columns of the tables it reads each column is made from."""
        scope = build_scope(self.qualified)
        return {column.name: _sources(self, column.name, scope) for column in self.file.columns}


def published_columns() -> dict[str, tuple[str, ...]]:
    """The `published_<table>` views that a build starts from, with their columns."""
    tables = {name: tuple(schema.names) for name, schema in PUBLISHED.items()}
    tables["publications"] = tuple(PUBLICATIONS.names)
    tables["left_out"] = tuple(LEFT_OUT.names)
    return {f"{PUBLISHED_PREFIX}{name}": columns for name, columns in tables.items()}


@cache
def sql_catalog() -> tuple[SqlTable, ...]:
    """The project's files, each after those that it reads.

    Raises:
        SqlContractError: a file that is not what it says.
    """
    return read_catalog(resources.files("sql"))


def read_catalog(root: Traversable) -> tuple[SqlTable, ...]:
    """Every `.sql` file of the known folders under `root`, each after those that it reads.

    Raises:
        SqlContractError: a file that is not what it says.
    """
    return _resolve(read_files(root))


def read_files(root: Traversable) -> dict[str, SqlFile]:
    """Every `.sql` file of the known folders under `root` by name, each looked at by itself.

    Raises:
        SqlContractError: a file that is not what it says, two of one name.
    """
    files: dict[str, SqlFile] = {}
    for folder in FOLDERS:
        directory = root.joinpath(folder)
        if not directory.is_dir():
            continue
        for entry in sorted(directory.iterdir(), key=lambda item: item.name):
            if not entry.name.endswith(".sql"):
                continue
            path = f"sql/{folder}/{entry.name}"
            file = read_sql_file(path, folder, entry.read_text(encoding="utf-8"))
            if file.name in files:
                raise SqlContractError(
                    path, 1, f"table {file.name} is already in {files[file.name].path}"
                )
            files[file.name] = file
    return files


def _resolve(files: Mapping[str, SqlFile]) -> tuple[SqlTable, ...]:
    columns = published_columns()
    reads = {name: _references(file, columns, files) for name, file in files.items()}
    tables: list[SqlTable] = []
    for name in _order(files, reads):
        file = files[name]
        qualified = _qualify(file, columns)
        _check_columns(file, qualified)
        columns[name] = tuple(column.name for column in file.columns)
        _check_assertions(file, columns)
        tables.append(SqlTable(file, reads[name], qualified))
    return tuple(tables)


def _references(file: SqlFile, published: Columns, files: Mapping[str, SqlFile]) -> tuple[str, ...]:
    names: set[str] = set()
    for scope in traverse_scope(file.query):
        for source in scope.sources.values():
            if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
                continue
            if source.name not in published and source.name not in files:
                raise SqlContractError(
                    file.path,
                    file.line_of(source.name),
                    f"there is no table {source.name}; add sql/<folder>/{source.name}.sql",
                )
            names.add(source.name)
    return tuple(sorted(names))


def _order(files: Mapping[str, SqlFile], reads: Mapping[str, tuple[str, ...]]) -> list[str]:
    graph = {name: [read for read in reads[name] if read in files] for name in files}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1]
        file = files[circle[0]]
        raise SqlContractError(
            file.path, 1, f"the tables read each other in a circle: {' <- '.join(circle)}"
        ) from error


def _qualify(file: SqlFile, columns: Columns) -> exp.Query:
    schema: dict[str, object] = {
        table: dict.fromkeys(names, "unknown") for table, names in columns.items()
    }
    try:
        qualified = qualify(file.query.copy(), schema=schema, dialect=DIALECT)
    except SqlglotError as error:
        raise SqlContractError(file.path, error_line(error), first_line(error)) from error
    if not isinstance(qualified, exp.Query):
        raise SqlContractError(file.path, 1, "not a SELECT")
    return qualified


def _check_columns(file: SqlFile, qualified: exp.Query) -> None:
    actual = qualified.named_selects
    documented = [column.name for column in file.columns]
    for name in actual:
        if name not in documented:
            raise SqlContractError(
                file.path, file.line_of(name), f"column {name} is not in the header"
            )
    for column in file.columns:
        if column.name not in actual:
            raise SqlContractError(
                file.path, column.line, f"the header documents {column.name}, the SELECT has none"
            )
    if len(set(actual)) != len(actual):
        twice = next(name for name in actual if actual.count(name) > 1)
        raise SqlContractError(file.path, file.line_of(twice), f"two columns are named {twice}")


def _check_assertions(file: SqlFile, columns: Columns) -> None:
    schema: dict[str, object] = {file.name: dict.fromkeys(columns[file.name], "unknown")}
    for assertion in file.assertions:
        try:
            condition = sqlglot.parse_one(assertion.expression, read=DIALECT)
            query = exp.select(condition.as_("holds")).from_(file.name)
            qualify(query, schema=schema, dialect=DIALECT)
        except SqlglotError as error:
            raise SqlContractError(
                file.path, assertion.line, f"assertion {assertion.name}: {first_line(error)}"
            ) from error


def _sources(table: SqlTable, column: str, scope: Scope | None) -> list[ColumnSource]:
    try:
        # To trim selects takes twenty times as long, and changes nothing of where columns are from.
        node = lineage(
            column,
            table.qualified,
            schema={},
            dialect=DIALECT,
            scope=scope,
            copy=False,
            trim_selects=False,
        )
    except (SqlglotError, ValueError) as error:
        raise SqlContractError(
            table.file.path, table.file.line_of(column), f"column {column}: {error}"
        ) from error
    found = {source for leaf in node.walk() if (source := _source(leaf)) is not None}
    return sorted(found, key=lambda source: (source.table, source.column))


def _source(node: Node) -> ColumnSource | None:
    if not isinstance(node.expression, exp.Table) or node.downstream:
        return None
    return ColumnSource(node.expression.name, node.name.rpartition(".")[2].strip('"'))
