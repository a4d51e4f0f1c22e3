"""The DuckDB database file: built beside the old one and swapped in whole.

`DatabaseBuild` opens a new file in which published Parquet is visible as `published_<table>`
views and into which tables are made from SELECTs. Readers of the old file are never blocked, and
a build that fails or dies leaves the old file as it was.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from assets.tables.contracts import CONTRACTS, PUBLICATIONS, PUBLISHED, check_file
from assets.tables.errors import WarehouseError
from assets.tables.failpoints import passing
from assets.tables.losses import expect_whole
from assets.tables.omission import Kept, everything, without
from assets.tables.set_aside import SetAside, set_aside
from assets.tables.warehouse import GENESIS, Publication, Warehouse, flush_to_disk

# DuckDB 1.5 opens a file of this storage version, and so does every later one. Older versions try
# more ways of compressing every text, which takes a quarter longer for a file as large.
_STORAGE_VERSION = "v1.4.0"
_MEMORY_LIMIT = "3500MB"


class DatabaseBuild:
    """One build of the database; tables appear in the order in which they are made."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def create(self, table: str, select: str, uncompressed: Collection[str] = ()) -> int:
        """Make a table from a SELECT, some columns stored as they are; return how many rows it has.

        Raises:
            duckdb.Error: a SELECT that does not run.
        """
        rows = self._connection.sql(select)
        if uncompressed:
            self._connection.execute(_table_for(table, rows, uncompressed))
            rows.insert_into(table)
        else:
            rows.create(table)
        return len_of(self._connection.table(table))

    def create_view(self, view: str, select: str) -> None:
        """Make a view from a SELECT over tables of this build.

        Raises:
            duckdb.Error: a SELECT that does not run.
        """
        self._connection.sql(select).create_view(view)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Names and DuckDB types of a table's columns."""
        relation = self._connection.table(table)
        return [
            (name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)
        ]

    def query(self, select: exp.Query) -> list[tuple[object, ...]]:
        """Rows of a query that was put together as a syntax tree.

        Raises:
            duckdb.Error: a query that does not run.
        """
        return self._connection.sql(select.sql("duckdb")).fetchall()

    def hashes(self, select: exp.Query) -> npt.NDArray[np.uint64]:
        """The one column of a query for a hash of every row.

        Raises:
            duckdb.Error: a query that does not run.
        """
        columns = self._connection.sql(select.sql("duckdb")).fetchnumpy()
        [hashes] = columns.values()
        return np.asarray(hashes, dtype=np.uint64)

    def comment(self, table: str, text: str, columns: Mapping[str, str], *, view: bool) -> None:
        """Describe a table or view and its columns for those who open the database."""
        name = exp.to_identifier(table, quoted=True)
        statements = [_comment("VIEW" if view else "TABLE", exp.Table(this=name), text)]
        for column, description in columns.items():
            target = exp.Column(this=exp.to_identifier(column, quoted=True), table=name.copy())
            statements.append(_comment("COLUMN", target, description))
        # In one transaction: each of its own takes a millisecond, and there are a thousand.
        self._connection.begin()
        self._connection.execute("; ".join(statements))
        self._connection.commit()


def _comment(kind: str, target: exp.Expression, text: str) -> str:
    """The statement that describes one thing."""
    return exp.Comment(this=target, kind=kind, expression=exp.Literal.string(text)).sql("duckdb")


def _table_for(table: str, rows: duckdb.DuckDBPyRelation, uncompressed: Collection[str]) -> str:
    """The statement that makes an empty table for these rows."""
    as_it_is = exp.ColumnConstraint(kind=exp.Var(this="using compression uncompressed"))
    columns = [
        exp.ColumnDef(
            this=exp.to_identifier(name, quoted=True),
            kind=exp.DataType.build(str(kind), dialect="duckdb"),
            constraints=[as_it_is.copy()] if name in uncompressed else [],
        )
        for name, kind in zip(rows.columns, rows.types, strict=True)
    ]
    name = exp.Table(this=exp.to_identifier(table, quoted=True))
    return exp.Create(kind="TABLE", this=exp.Schema(this=name, expressions=columns)).sql("duckdb")


def len_of(relation: duckdb.DuckDBPyRelation) -> int:
    """The number of rows of a relation."""
    return int(relation.count("*").fetchall()[0][0])


@contextmanager
def building(
    warehouse: Warehouse, omitted: Mapping[str, SetAside] | None = None
) -> Iterator[DatabaseBuild]:
    """Build a new database and swap it in when the block ends without an error.

    `omitted` are the publications that it is built without, by default those that are set aside.

    Raises:
        WarehouseError: the files have less than was published; the old database stays.
    """
    with warehouse.locked():
        if warehouse.until is None:
            expect_whole(warehouse)
        path = warehouse.database.with_name(f".{warehouse.database.name}.building")
        path.unlink(missing_ok=True)
        connection = warehouse.connect(_MEMORY_LIMIT)
        try:
            connection.execute(_attach(path))
            # One checkpoint at the end, none between the tables.
            connection.execute("set checkpoint_threshold = '1TB'")
            connection.execute("set search_path = 'kernelindex.main,memory.main'")
            _publish_views(
                connection, warehouse, set_aside(warehouse) if omitted is None else omitted
            )
            yield DatabaseBuild(connection)
            connection.execute("checkpoint kernelindex")
            connection.execute("use memory")
            connection.execute("detach kernelindex")
        except BaseException as error:
            connection.close()
            path.unlink(missing_ok=True)
            Path(f"{path}.wal").unlink(missing_ok=True)
            if isinstance(error, duckdb.Error):
                raise WarehouseError(
                    f"{warehouse.root}: the database cannot be built ({error}); run "
                    "`kernelindex doctor`"
                ) from error
            raise
        connection.close()
        flush_to_disk(path)
        passing("database built")
        if warehouse.database.is_dir():
            warehouse.put_aside(warehouse.database)
        path.replace(warehouse.database)
        flush_to_disk(warehouse.root)


def _attach(path: Path) -> str:
    # As a statement, because DuckDB 1.5 takes no parameters in ATTACH.
    version = exp.AttachOption(
        this=exp.Var(this="storage_version"), expression=exp.Literal.string(_STORAGE_VERSION)
    )
    database = exp.alias_(exp.Literal.string(str(path)), "kernelindex")
    return exp.Attach(this=database, expressions=[version]).sql("duckdb")


_TIME_FORMAT = "%Y%m%dT%H%M%SZ"


def published_rows(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, table: str
) -> duckdb.DuckDBPyRelation:
    """All rows of a table with the columns of `PUBLISHED`, wherever they lie and of any version.

    Raises:
        OtherVersionError: a file that only another version of this program can read.
        WarehouseError: a file that is damaged, or has other columns or types than its version.
    """
    own = _files_with_rows(warehouse, table)
    parts = [
        _rows_of(connection, table, version, files, placed=placed)
        for placed, all_files in ((False, own), (True, warehouse.compacted_files(table)))
        for version, files in _by_version(table, all_files, placed=placed).items()
    ]
    rows = reduce(duckdb.DuckDBPyRelation.union, parts)
    if warehouse.until is not None:
        rows = rows.filter(f"publication_id <= '{warehouse.until}'")
    return rows


def _by_version(table: str, files: list[str], *, placed: bool) -> dict[int, list[str]]:
    """The files by the version of the table that each says it is of, newest first."""
    found: dict[int, list[str]] = {}
    for file in files:
        found.setdefault(check_file(table, Path(file), placed=placed), []).append(file)
    return dict(sorted(found.items(), reverse=True))


def _rows_of(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    version: int,
    files: list[str],
    *,
    placed: bool,
) -> duckdb.DuckDBPyRelation:
    """The rows of files of one version, with what they lack made explicit."""
    columns = {name: duckdb.ColumnExpression(name) for name in PUBLISHED[table].names}
    types = connection.from_arrow(PUBLISHED[table].empty_table())
    kinds = dict(zip(types.columns, types.types, strict=True))
    for column in CONTRACTS[table].added_since(version):
        default = duckdb.ConstantExpression(column.default)
        columns[column.name] = default.cast(kinds[column.name])
    if not placed:
        # The directory names the publication; its identifier ends with the time.
        columns["published_at"] = duckdb.FunctionExpression(
            "try_strptime",
            duckdb.FunctionExpression(
                "split_part",
                duckdb.ColumnExpression("publication_id"),
                duckdb.ConstantExpression("-"),
                duckdb.ConstantExpression(2),
            ),
            duckdb.ConstantExpression(_TIME_FORMAT),
        )
    rows = connection.read_parquet(files, hive_partitioning=not placed)
    return rows.select(*(value.alias(name) for name, value in columns.items()))


def _files_with_rows(warehouse: Warehouse, table: str) -> list[str]:
    # DuckDB expects every file to have as many rows as the first one; after the empty file of the
    # first publication it would expect none and build its joins on the larger side.
    empty = str(warehouse.folder_of(GENESIS))
    files = warehouse.own_files(table)
    return [file for file in files if not file.startswith(empty)] or files


def create_published_view(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, table: str
) -> None:
    """Make all rows of a table visible as `published_<table>`."""
    published_rows(connection, warehouse, table).create_view(f"published_{table}")


def _publish_views(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    omitted: Mapping[str, SetAside],
) -> None:
    connection.execute("use memory")
    records = warehouse.publications()
    kept = _kept(connection, warehouse, records, omitted)
    for table, relation in kept.tables.items():
        relation.create_view(f"published_{table}")
    connection.from_arrow(kept.left_out).create("published_left_out")
    used = [record for record in records if record.publication_id not in omitted]
    connection.from_arrow(publications_table(used)).create("published_publications")
    connection.execute("use kernelindex")
    connection.execute("set search_path = 'kernelindex.main,memory.main'")


def _kept(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    records: list[Publication],
    omitted: Mapping[str, SetAside],
) -> Kept:
    rows = {table: published_rows(connection, warehouse, table) for table in PUBLISHED}
    return without(connection, rows, records, omitted) if omitted else everything(rows)


def left_out_runs(warehouse: Warehouse, omitted: Mapping[str, SetAside]) -> int:
    """How many runs a build without some publications lacks, theirs and what rests on them."""
    with warehouse.connect(_MEMORY_LIMIT) as connection:
        kept = _kept(connection, warehouse, warehouse.publications(), omitted)
    return sum(kept.left_out["left_out_runs"].to_pylist())


def publications_table(publications: list[Publication]) -> pa.Table:
    """The publication records as rows."""
    rows = [
        {
            "publication_id": record.publication_id,
            "published_at": record.published_at.replace(tzinfo=None),
            "kind": record.kind,
            "dataset": record.dataset,
            "revision": record.revision,
            "new_runs": record.tables["runs"].rows if "runs" in record.tables else 0,
            "new_rows": sum(file.rows for file in record.tables.values()),
        }
        for record in publications
    ]
    return pa.Table.from_pylist(rows, schema=PUBLICATIONS)
