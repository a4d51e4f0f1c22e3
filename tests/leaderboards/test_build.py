from pathlib import Path

import duckdb
import pytest

from assets.leaderboards.build import BrokenContractError, build_database
from assets.leaderboards.catalog import read_catalog
from assets.tables.warehouse import Warehouse


def catalog(folder: Path, *, numbers: str, assertion: str = "n > 0"):
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "tables" / "numbers.sql").write_text(
        f"""-- numbers: one row per number, that's all
-- key: n
-- column n: a number, in apples
-- assert right: {assertion}
select n from (values {numbers}) as given (n)
"""
    )
    (folder / "views").mkdir(exist_ok=True)
    (folder / "views" / "doubled.sql").write_text(
        """-- doubled: one row per number
-- key: n
-- column n: a number
-- column twice: two times n
select n, n * 2 as twice from numbers
"""
    )
    return read_catalog(folder)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.prepare()
    return warehouse


def test_tables_views_and_their_comments_are_in_the_database(warehouse, tmp_path):
    outcome = build_database(warehouse, catalog=catalog(tmp_path / "sql", numbers="(1), (2)"))
    assert [(table.table.name, table.rows) for table in outcome.tables] == [
        ("numbers", 2),
        ("doubled", None),
    ]
    assert outcome.size_bytes == warehouse.database.stat().st_size
    with duckdb.connect(str(warehouse.database), read_only=True) as connection:
        assert connection.sql("from doubled").fetchall() == [(1, 2), (2, 4)]
        comments = connection.sql(
            "select column_name, comment from duckdb_columns() where table_name = 'numbers'"
        ).fetchall()
        [(comment,)] = connection.sql(
            "select comment from duckdb_tables() where table_name = 'numbers'"
        ).fetchall()
    assert comments == [("n", "a number, in apples")]
    assert comment == "one row per number, that's all."


def test_progress_names_each_table_as_it_is_made(warehouse, tmp_path):
    seen = []
    build_database(warehouse, seen.append, catalog(tmp_path / "sql", numbers="(1)"))
    assert [(step.done, step.total, step.name, step.rows) for step in seen] == [
        (1, 2, "numbers", 1),
        (2, 2, "doubled", None),
    ]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            "(1), (-1), (-2), (-3), (-4)",
            "sql/tables/numbers.sql: assertion right (n > 0) fails for 4 rows, "
            "e.g. n=-1; n=-2; n=-3\n",
        ),
        (
            "(1), (null)",
            "sql/tables/numbers.sql: assertion right (n > 0) fails for 1 rows, e.g. n=None\n",
        ),
        (
            "(1), (7), (7)",
            "sql/tables/numbers.sql: key (n) occurs more than once for 1 keys, e.g. n=7\n",
        ),
    ],
)
def test_a_broken_promise_keeps_the_old_database_and_is_named(
    warehouse, tmp_path, numbers, message
):
    build_database(warehouse, catalog=catalog(tmp_path / "sql", numbers="(42)"))
    before = warehouse.database.read_bytes()
    with pytest.raises(BrokenContractError) as caught:
        build_database(warehouse, catalog=catalog(tmp_path / "sql", numbers=numbers))
    assert message in caught.value.message
    assert warehouse.database.read_bytes() == before
    assert [path.name for path in warehouse.root.glob(".*.building*")] == []


def test_an_empty_warehouse_has_every_table(warehouse):
    outcome = build_database(warehouse)
    rows = {table.table.name: table.rows for table in outcome.tables}
    assert rows["run_facts"] == rows["run_rank_facts"] == rows["caveat_facts"] == 0
    with duckdb.connect(str(warehouse.database), read_only=True) as opened:
        for view in ("runs", "ranked_runs", "caveats", "ranked_implementations", "author_results"):
            assert opened.table(view).fetchall() == []
