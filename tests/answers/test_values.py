"""Values come out as standard JSON and CSV, and a query can touch nothing else."""

import io
import json
import math
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.answers.errors import QueryError
from assets.answers.values import json_value, run_query, write_parquet
from assets.tables.reader import open_database


@pytest.fixture
def index(sample_warehouse: Path):
    with open_database(sample_warehouse) as connection:
        yield connection


def test_values_of_every_kind_become_json(index: duckdb.DuckDBPyConnection) -> None:
    rows = run_query(
        index,
        """
        select 'nan'::double as nan, '-inf'::double as low, [1, 2] as list, {'a': 1} as struct,
            map {'k': 1} as map, timestamp '2026-01-02 03:04:05.678' as at,
            date '2026-01-02' as day, 1.5 as decimal, 10::hugeint as huge, '\\xAA'::blob as bytes,
            null as nothing, 1 as nothing
        """,
    )
    [found] = rows.as_objects()
    assert found == {
        "nan": "NaN",
        "low": "-Infinity",
        "list": [1, 2],
        "struct": {"a": 1},
        "map": {"k": 1},
        "at": "2026-01-02T03:04:05.678Z",
        "day": "2026-01-02",
        "decimal": 1.5,
        "huge": 10,
        "bytes": "qg==",
        "nothing": None,
        "nothing_2": 1,
    }


@given(st.floats())
def test_every_float_is_standard_json(number: float) -> None:
    text = json.dumps(json_value(number), allow_nan=False)
    assert float(json.loads(text)) == number or math.isnan(number)


def test_csv_has_a_header_and_quotes_what_needs_it(index: duckdb.DuckDBPyConnection) -> None:
    stream = io.StringIO()
    run_query(index, "select 'a,\"b\"' as text, null as nothing, [1] as list").write_csv(stream)
    assert stream.getvalue() == 'text,nothing,list\n"a,""b""",,[1]\n'


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{folder}/out.csv'",
        "copy runs to '{folder}/out.parquet' (format parquet)",
        "export database '{folder}'",
        "select * from read_csv('{folder}/secret.csv')",
        "select * from read_text('{folder}/secret.csv')",
        "select * from '{folder}/secret.csv'",
        "select * from glob('{folder}/*')",
        "attach '{folder}/other.duckdb'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "create table runs_2 as select 1",
        "insert into runs select * from runs",
        "delete from runs",
        "drop table runs",
        "select * from read_parquet('https://example.org/x.parquet')",
        "select 1; select 2",
        "selec 1",
        "",
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(
    index: duckdb.DuckDBPyConnection, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    with pytest.raises(QueryError) as raised:
        run_query(index, sql.format(folder=tmp_path))
    assert "\n" not in raised.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


LARGE = "select list(range) as numbers from range(400_000_000)"


def test_a_query_may_use_a_share_of_the_memory_only(
    index: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with pytest.raises(QueryError, match="needs more than 2GB of memory; ask for fewer rows"):
        list(run_query(index, LARGE))
    with pytest.raises(QueryError, match="needs more than 2GB"):
        write_parquet(index, LARGE, tmp_path / "large.parquet")


@pytest.mark.parametrize("late", [12, 200_000])
def test_a_query_that_fails_while_its_rows_are_fetched_says_why(
    index: duckdb.DuckDBPyConnection, tmp_path: Path, late: int
) -> None:
    sql = f"select if(range = {late}, error('too far'), range) from range(300_000)"
    with pytest.raises(QueryError, match="too far"):
        list(run_query(index, sql))
    with pytest.raises(QueryError, match="too far"):
        write_parquet(index, sql, tmp_path / "rows.parquet")


def test_variables_of_the_program_are_no_tables(index: duckdb.DuckDBPyConnection) -> None:
    secret = duckdb.sql("select 1 as a")
    with pytest.raises(QueryError, match="does not exist"):
        run_query(index, "select * from secret")
    assert secret.fetchall() == [(1,)]
