"""What pages are made from: rows of the database as mappings, read once or streamed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import duckdb

from assets.answers.stored import manifest_of
from assets.leaderboards.site.rendering import pretty_json
from assets.tables.published import open_with_published, use_published
from assets.tables.warehouse import Warehouse

Row = dict[str, Any]

_BATCH_ROWS = 1_000
_OPTIONAL = ("reproductions", "rerun_samples")
_PROVENANCE = frozenset(
    ("dataset", "revision", "path", "line", "parser_version", "publication_id", "published_at")
)


@dataclass
class IndexReader:
    """One open index; statements are this project's own."""

    connection: duckdb.DuckDBPyConnection
    _manifests: dict[str, Row] = field(default_factory=dict)
    _manifest_texts: dict[str, str] = field(default_factory=dict)

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
        """All rows of a query."""
        result = self.connection.execute(sql, dict(parameters or {}))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def value(self, sql: str, parameters: Mapping[str, object] | None = None) -> Any:
        """The one value of a query with one row."""
        return self.connection.execute(sql, dict(parameters or {})).fetchall()[0][0]

    def stream(self, sql: str) -> Iterator[Row]:
        """Rows of a query as they come; other queries may run between them."""
        cursor = self.connection.cursor()
        try:
            use_published(cursor)
            cursor.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            while batch := cursor.fetchmany(_BATCH_ROWS):
                for row in batch:
                    yield dict(zip(names, row, strict=True))
        finally:
            cursor.close()

    def manifest(self, digest: str) -> Row:
        """The manifest of anything but a run, each read once."""
        if digest not in self._manifests:
            [row] = self.rows(
                "select canonical_json, metadata_json from manifests where digest = $digest",
                {"digest": digest},
            )
            self._manifests[digest] = manifest_of(row["canonical_json"], row["metadata_json"])
        return self._manifests[digest]

    def manifest_text(self, digest: str) -> str:
        """The same as people read it, each written once."""
        if digest not in self._manifest_texts:
            self._manifest_texts[digest] = pretty_json(self.manifest(digest))
        return self._manifest_texts[digest]

    @cached_property
    def dataset_pages(self) -> dict[tuple[str, str], str | None]:
        """Where each dataset revision is shown, if anywhere."""
        rows = self.rows("select dataset, revision, max(url) as url from revisions group by all")
        return {(row["dataset"], row["revision"]): row["url"] for row in rows}

    @cached_property
    def tables(self) -> frozenset[str]:
        """Tables that this database has, of those that not every one has."""
        rows = self.rows(
            "select table_name as name from information_schema.tables "
            "where table_catalog = 'kernelindex' and list_contains($names, table_name)",
            {"names": list(_OPTIONAL)},
        )
        return frozenset(row["name"] for row in rows)

    @cached_property
    def reproductions(self) -> dict[str, list[Row]]:
        """What came of reruns, by the run that was reproduced and by the run that did it."""
        found: dict[str, list[Row]] = {}
        if "reproductions" in self.tables:
            for row in self.rows("from reproductions order by all"):
                shown = {name: value for name, value in row.items() if name not in _PROVENANCE}
                for digest in {row["run_digest"], row["reproduces_digest"]}:
                    found.setdefault(digest, []).append(shown)
        return found

    @cached_property
    def samples(self) -> dict[str, dict[str, list[float]]]:
        """Raw latencies in ns by run and series, where a rerun kept them; in the order of calls."""
        if "rerun_samples" not in self.tables:
            return {}
        columns = [row["column_name"] for row in self.rows("describe rerun_samples")]
        [latency] = [name for name in columns if name.endswith("_ns")][:1] or [None]
        if latency is None:
            return {}
        found: dict[str, dict[str, list[float]]] = {}
        for row in self.rows(
            f"select run_digest, series::varchar as series, list({latency}::double order by call) "
            "as latencies from rerun_samples group by all order by all"
        ):
            found.setdefault(row["run_digest"], {})[row["series"]] = row["latencies"]
        return found


@contextmanager
def open_reader(warehouse: Warehouse) -> Iterator[IndexReader]:
    """The index of a warehouse, with the published files of runs and artifacts.

    Raises:
        WarehouseError: where nothing was ingested yet, or the database is damaged.
    """
    with open_with_published(warehouse, ("runs", "artifacts")) as connection:
        yield IndexReader(connection)


def grouped(rows: Sequence[Row], key: str) -> dict[Any, list[Row]]:
    """Rows by the value of a column, in their order."""
    result: dict[Any, list[Row]] = {}
    for row in rows:
        result.setdefault(row[key], []).append(row)
    return result
