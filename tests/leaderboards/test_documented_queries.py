from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.leaderboards.documented_queries import PAGE, answer, documented_queries

QUERIES = documented_queries(PAGE.read_text())


@pytest.fixture(scope="module")
def connection(sample_warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    database = sample_warehouse / "kernelindex.duckdb"
    with duckdb.connect(str(database), read_only=True) as opened:
        yield opened


def test_the_page_has_every_query_that_it_shows():
    page = PAGE.read_text()
    assert len(QUERIES) == page.count("```sql") == page.count("\n## ")
    assert len(QUERIES) >= 15


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.title)
def test_a_documented_query_answers_what_the_page_says(connection, query):
    assert answer(connection, query.sql) == query.answer
