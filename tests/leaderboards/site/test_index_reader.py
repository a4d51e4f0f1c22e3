"""Reruns are shown where the database has them, and nothing is missed where it has not."""

from pathlib import Path

import duckdb
import pytest

from assets.leaderboards.site.figures import raw_samples
from assets.leaderboards.site.index_reader import IndexReader


@pytest.fixture
def connection(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(tmp_path / "kernelindex.duckdb"))


def test_a_database_without_reruns_has_none(connection: duckdb.DuckDBPyConnection) -> None:
    reader = IndexReader(connection)
    assert reader.reproductions == {}
    assert reader.samples == {}


def test_a_reproduction_is_found_by_both_of_its_runs(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute(
        "create table reproductions as select 'new' as run_digest, 'old' as reproduces_digest, "
        "'confirmed' as verdict, 'somewhere' as path"
    )
    expected = [{"run_digest": "new", "reproduces_digest": "old", "verdict": "confirmed"}]
    assert IndexReader(connection).reproductions == {"new": expected, "old": expected}


def test_samples_come_in_the_order_of_their_calls(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "create table rerun_samples as from (values ('run', 'candidate', 2, 7000), "
        "('run', 'candidate', 1, 5000), ('run', 'reference', 1, 9000)) "
        "as samples (run_digest, series, call, latency_ns)"
    )
    samples = IndexReader(connection).samples["run"]
    assert samples == {"candidate": [5000, 7000], "reference": [9000]}
    figure = raw_samples("samples", "run", samples)
    assert figure is not None
    assert figure.rows == (
        ("candidate", 1, 5000),
        ("candidate", 2, 7000),
        ("reference", 1, 9000),
    )
    assert "3 samples" in figure.caption
