"""The queries of docs/queries.md and what they answer on the bundled sample.

`python -m tests.leaderboards.documented_queries` runs them and writes the answers into the file.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.warehouses import ingest_into

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"

_QUERY = re.compile(
    r"^## (?P<title>.+?)\n(?P<text>.*?)^```sql\n(?P<sql>.*?)^```\n(?P<answer>(?:\n\|[^\n]*)*\n?)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class DocumentedQuery:
    """A section of the page; `answer` is the Markdown table under the query."""

    title: str
    sql: str
    answer: str


def documented_queries(page: str) -> list[DocumentedQuery]:
    """The queries of the page in their order."""
    return [
        DocumentedQuery(found["title"], found["sql"], found["answer"].strip())
        for found in _QUERY.finditer(page)
    ]


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """What a query answers, as a Markdown table."""
    found = connection.sql(sql)
    lines = [found.columns, ["---"] * len(found.columns)]
    lines += [["" if cell is None else str(cell) for cell in row] for row in found.fetchall()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_answers(page: str, connection: duckdb.DuckDBPyConnection) -> str:
    """The page with every answer written anew."""
    return _QUERY.sub(
        lambda found: (
            f"## {found['title']}\n{found['text']}```sql\n{found['sql']}```\n\n"
            f"{answer(connection, found['sql'])}\n"
        ),
        page,
    )


def main() -> None:
    """Write the answers into the page."""
    with tempfile.TemporaryDirectory() as folder:
        ingest_into(Path(folder) / "warehouse")
        database = Path(folder) / "warehouse" / "kernelindex.duckdb"
        with duckdb.connect(str(database), read_only=True) as connection:
            PAGE.write_text(with_answers(PAGE.read_text(), connection))


if __name__ == "__main__":
    main()
