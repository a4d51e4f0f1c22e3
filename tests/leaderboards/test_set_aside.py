"""A publication that breaks a statement is set aside by itself, and comes back by one command."""

from importlib import resources
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

import assets.leaderboards.build as build_module
from assets.leaderboards.build import FailedStatementError, build_database
from assets.leaderboards.catalog import SqlTable, read_catalog
from assets.leaderboards.history import database_as_of
from assets.leaderboards.index import build_index, readmit
from assets.leaderboards.reproduction import examine_database
from assets.tables.compaction import compact
from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault
from assets.tables.set_aside import FILE_NAME, Change, findings, history, record, set_aside
from assets.tables.warehouse import GENESIS, Warehouse
from tests.builders import dataset
from tests.warehouses import ingest_into

Catalog = tuple[SqlTable, ...]

_FRAGILE = """\
-- fragile: one row per publication with runs
-- key: publication_id
-- column publication_id: the publication
-- column number: what its runs come to
-- assert holds: {assertion}
select
    publication_id,
    max({expression}) as number
from published_runs
group by publication_id
"""


@pytest.fixture
def warehouse(warehouse_copy: Path) -> Warehouse:
    """The sample in three publications: baseline, kernelindex-torch, everybody else."""
    return Warehouse(warehouse_copy)


def catalog(folder: Path, expression: str = "1", assertion: str = "true") -> Catalog:
    """Of the project's statements those that name publications, and one that breaks on some rows.

    All of them would only make every build of a test last longer.
    """
    (folder / "sql" / "tables").mkdir(parents=True)
    for name in ("publications", "left_out"):
        own = resources.files("sql").joinpath("tables", f"{name}.sql").read_text()
        (folder / "sql" / "tables" / f"{name}.sql").write_text(own)
    text = _FRAGILE.format(expression=expression, assertion=assertion)
    (folder / "sql" / "tables" / "fragile.sql").write_text(text)
    return read_catalog(folder / "sql")


def breaking_on(author: str) -> str:
    """An expression that is no number where a run is by this author."""
    return f"case when author_directory = '{author}' then solution_name::integer end"


def ids(warehouse: Warehouse) -> list[str]:
    return [item.publication_id for item in warehouse.publications() if item.sequence]


def rows(warehouse: Warehouse, query: str) -> list[tuple]:
    with duckdb.connect(str(warehouse.database), read_only=True) as connection:
        return connection.sql(query).fetchall()


def forget(warehouse: Warehouse, publication_id: str) -> None:
    """Have a database that was made before this publication."""
    record(warehouse, Change.SET_ASIDE, publication_id)
    build_database(warehouse)
    (warehouse.root / FILE_NAME).unlink()


def publications_with_runs(warehouse: Warehouse) -> list[str]:
    return [name for (name,) in rows(warehouse, "select publication_id from fragile order by 1")]


@pytest.mark.parametrize(
    ("author", "culprit"),
    [("baseline", 0), ("kernelindex-torch", 1), ("kernelindex-triton", 2)],
)
def test_the_publication_that_breaks_a_statement_is_left_out_and_named(
    warehouse, tmp_path, author, culprit
):
    said = []
    name = ids(warehouse)[culprit]
    forget(warehouse, name)
    build_index(warehouse, catalog=catalog(tmp_path, breaking_on(author)), say=said.append)
    [entry] = set_aside(warehouse).values()
    assert (entry.publication_id, entry.statement) == (name, "sql/tables/fragile.sql")
    assert entry.error.startswith("Conversion Error: Could not convert string ")
    assert name not in publications_with_runs(warehouse)
    assert (name,) not in rows(warehouse, "select publication_id from publications")
    assert rows(
        warehouse, "select publication_id, statement from left_out where set_aside_at is not null"
    ) == [(name, "sql/tables/fragile.sql")]
    assert [name in text for text in said] == [False, True]
    assert [finding.fault for finding in findings(warehouse)] == [Fault.SET_ASIDE]


def test_each_of_several_culprits_is_set_aside(warehouse, tmp_path):
    """A fourth publication of another dataset makes the two a minority."""
    ingest_into(warehouse.root, dataset=str(dataset(tmp_path / "other")), build=False)
    broken = "coalesce({}, {})".format(*map(breaking_on, ("kernelindex-torch", "ann")))
    build_index(warehouse, catalog=catalog(tmp_path, broken))
    first, second, third, fourth = ids(warehouse)
    assert list(set_aside(warehouse)) == [second, fourth]
    assert publications_with_runs(warehouse) == [first, third]


def test_a_broken_promise_of_a_table_sets_aside_what_brought_it(warehouse, tmp_path):
    expression = "(author_directory = 'kernelindex-torch')::integer"
    build_index(warehouse, catalog=catalog(tmp_path, expression, "number = 0"))
    [entry] = set_aside(warehouse).values()
    assert entry.publication_id == ids(warehouse)[1]
    assert entry.error == (
        f"assertion holds (number = 0) fails for 1 rows, e.g. publication_id={entry.publication_id}"
    )


def test_what_rests_on_a_publication_that_is_set_aside_is_left_out_and_counted(warehouse):
    """The first publication has the definitions and workloads of all others."""
    first, second, third = ids(warehouse)
    record(warehouse, Change.SET_ASIDE, first, statement="s", error="e")
    build_index(warehouse)
    assert rows(warehouse, "select count(*) from runs") == [(0,)]
    assert rows(warehouse, "select count(*) from implementations") == [(0,)]
    found = rows(warehouse, "select publication_id, left_out_runs from left_out order by 1")
    brought = {
        item.publication_id: item.tables["runs"].rows for item in warehouse.publications()[1:]
    }
    assert dict(found) == {first: 22, second: brought[second], third: brought[third]}
    # What everybody shares stays.
    assert rows(warehouse, "select count(*) from protocols") == [(1,)]
    assert rows(warehouse, "select count(*) from environments") == [(1,)]


def test_it_comes_back_by_one_command_once_the_statement_is_mended(warehouse, tmp_path):
    mended = catalog(tmp_path / "mended")
    build_index(warehouse, catalog=catalog(tmp_path, breaking_on("kernelindex-torch")))
    first, second, third = ids(warehouse)
    assert publications_with_runs(warehouse) == [first, third]
    build_index(warehouse, catalog=mended)
    assert publications_with_runs(warehouse) == [first, third]
    assert readmit(warehouse, "2", catalog=mended) is None
    assert publications_with_runs(warehouse) == [first, second, third]
    assert set_aside(warehouse) == {}
    assert [entry.change for entry in history(warehouse)] == [Change.SET_ASIDE, Change.READMITTED]
    assert rows(warehouse, "from left_out") == []
    with pytest.raises(WarehouseError, match="is not set aside; what is: nothing"):
        readmit(warehouse, "2")


def test_what_still_breaks_is_set_aside_again(warehouse, tmp_path):
    broken = catalog(tmp_path, breaking_on("kernelindex-torch"))
    build_index(warehouse, catalog=broken)
    again = readmit(warehouse, "2", catalog=broken)
    assert again is not None
    assert again.publication_id == ids(warehouse)[1]
    assert [entry.change for entry in history(warehouse)] == [
        Change.SET_ASIDE,
        Change.READMITTED,
        Change.SET_ASIDE,
    ]


def test_a_statement_that_fails_without_any_rows_sets_nothing_aside(warehouse, tmp_path):
    before = warehouse.database.read_bytes()
    with pytest.raises(FailedStatementError, match=r"sql/tables/fragile\.sql"):
        build_index(warehouse, catalog=catalog(tmp_path, "(select 'x'::integer from range(1))"))
    assert history(warehouse) == []
    assert warehouse.database.read_bytes() == before


@pytest.mark.parametrize("author", ["%", "kernelindex-t%", "baseline"])
def test_a_statement_that_breaks_on_most_publications_sets_none_aside(warehouse, tmp_path, author):
    """It would leave a database that knows hardly anything in the place of a good one."""
    before = warehouse.database.read_bytes()
    expression = f"case when author_directory like '{author}' then solution_name::integer end"
    with pytest.raises(FailedStatementError, match=r"sql/tables/fragile\.sql"):
        build_index(warehouse, catalog=catalog(tmp_path, expression))
    assert history(warehouse) == []
    assert warehouse.database.read_bytes() == before


def test_the_only_publication_is_set_aside_unless_a_database_was_made_from_it(tmp_path):
    root = tmp_path / "warehouse"
    ingest_into(root, dataset=str(dataset(tmp_path / "data")), build=False)
    warehouse = Warehouse(root)
    [only] = ids(warehouse)
    broken, mended = catalog(tmp_path / "a", breaking_on("ann")), catalog(tmp_path / "b")
    build_index(warehouse, catalog=broken)
    assert list(set_aside(warehouse)) == [only]
    readmit(warehouse, only, catalog=mended)
    with pytest.raises(FailedStatementError):
        build_index(warehouse, catalog=broken)
    assert publications_with_runs(warehouse) == [only]
    assert set_aside(warehouse) == {}


@pytest.mark.parametrize(
    "cause",
    [
        duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate"),
        duckdb.IOException("IO Error: Could not write file: No space left on device"),
        duckdb.FatalException("FATAL Error: database has been invalidated"),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
        KeyboardInterrupt(),
        OSError(28, "No space left on device"),
    ],
)
def test_a_failure_of_the_machine_sets_nothing_aside(warehouse, tmp_path, monkeypatch, cause):
    """Also where it strikes only with the newest publication, as a disk that is nearly full."""
    newest = ids(warehouse)[-1]
    used = exp.select("publication_id").from_("published_publications")
    real = build_module._build_table

    def failing(build, table):
        if table.name == "fragile" and (newest,) in build.query(used):
            raise cause
        return real(build, table)

    monkeypatch.setattr(build_module, "_build_table", failing)
    with pytest.raises((WarehouseError, KeyboardInterrupt, OSError)):
        build_index(warehouse, catalog=catalog(tmp_path))
    assert history(warehouse) == []


def test_memory_that_is_too_small_sets_nothing_aside(warehouse, monkeypatch):
    monkeypatch.setattr("assets.tables.database._MEMORY_LIMIT", "3MB")
    with pytest.raises(WarehouseError):
        build_index(warehouse)
    assert history(warehouse) == []


def test_a_fault_that_does_not_come_again_sets_nothing_aside(warehouse, tmp_path, monkeypatch):
    real = build_module._build_table
    failed = []

    def once(build, table):
        if not failed:
            failed.append(table.name)
            raise duckdb.InternalException("INTERNAL Error: once")
        return real(build, table)

    monkeypatch.setattr(build_module, "_build_table", once)
    with pytest.raises(FailedStatementError):
        build_index(warehouse, catalog=catalog(tmp_path))
    assert history(warehouse) == []


def test_a_damaged_file_is_damage_and_sets_nothing_aside(warehouse):
    [path] = warehouse.folder_of(ids(warehouse)[1]).glob("runs-*.parquet")
    data = bytearray(path.read_bytes())
    data[40 : len(data) // 2] = bytes(len(data) // 2 - 40)
    path.write_bytes(data)
    with pytest.raises(WarehouseError):
        build_index(warehouse)
    assert history(warehouse) == []


@pytest.mark.integration
def test_compacted_publications_can_be_left_out_too(warehouse, tmp_path):
    compact(warehouse)
    build_index(warehouse, catalog=catalog(tmp_path, breaking_on("kernelindex-torch")))
    name = ids(warehouse)[1]
    assert list(set_aside(warehouse)) == [name]
    assert name not in publications_with_runs(warehouse)
    compact(warehouse, at_least=0)
    assert readmit(warehouse, name, catalog=catalog(tmp_path / "mended")) is None
    assert name in publications_with_runs(warehouse)


@pytest.mark.integration
def test_looking_back_leaves_out_what_is_set_aside_now(warehouse):
    name = ids(warehouse)[1]
    before = database_as_of(warehouse, "2")
    record(warehouse, Change.SET_ASIDE, name, statement="s", error="e")
    after = database_as_of(warehouse, "2")
    assert before != after
    with duckdb.connect(str(after), read_only=True) as connection:
        assert connection.sql("select publication_id from left_out").fetchall() == [(name,)]


@pytest.mark.integration
def test_a_database_of_before_is_seen_to_be_old(warehouse):
    name = ids(warehouse)[1]
    record(warehouse, Change.SET_ASIDE, name, statement="s", error="e")
    [finding] = examine_database(warehouse, rebuild=False).findings
    assert (finding.fault, finding.examples) == (Fault.OLD_DATABASE, (name,))
    build_database(warehouse)
    assert examine_database(warehouse).findings == []
    record(warehouse, Change.READMITTED, name)
    [finding] = examine_database(warehouse, rebuild=False).findings
    assert (finding.fault, finding.examples) == (Fault.OLD_DATABASE, (name,))


def test_half_a_line_was_never_said_and_a_damaged_one_is_named(warehouse):
    first, second, _ = ids(warehouse)
    record(warehouse, Change.SET_ASIDE, first, statement="s", error="e")
    path = warehouse.root / FILE_NAME
    with path.open("a") as stream:
        stream.write('{"at": "2026-12-0')
    assert list(set_aside(warehouse)) == [first]
    record(warehouse, Change.SET_ASIDE, second, statement="s", error="e")
    assert list(set_aside(warehouse)) == [first, second]
    path.write_text("no JSON\n" + path.read_text())
    with pytest.raises(WarehouseError, match=rf"{FILE_NAME}:1: no readable line"):
        build_index(warehouse)


def test_an_empty_warehouse_has_nothing_to_set_aside(tmp_path):
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.prepare()
    assert [item.publication_id for item in warehouse.publications()] == [GENESIS]
    with pytest.raises(FailedStatementError):
        build_index(warehouse, catalog=catalog(tmp_path, "(select 'x'::integer from range(1))"))
