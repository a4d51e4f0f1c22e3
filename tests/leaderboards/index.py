"""An index in memory: a test adds the rows it is about and reads tables made by the SQL files.

What a test does not state has a harmless default. Digests are readable words here; nothing under
`sql/` looks inside one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from assets.leaderboards.build import build_table
from assets.leaderboards.catalog import published_columns, sql_catalog
from assets.leaderboards.derive import derive
from assets.tables.contracts import LEFT_OUT, PUBLISHED
from assets.tables.database import DatabaseBuild, publications_table

Row = dict[str, Any]

GPU = "NVIDIA H200"
DATASET = "kernels"

_DEFAULTS: dict[str, Row] = {
    "runs": {
        "operation_digest": "operation",
        "workload_digest": "workload",
        "implementation_digest": "implementation",
        "protocol_digest": "protocol",
        "environment_digest": "environment",
        "comparison_key": "group",
        "correctness_key": "correctness",
        "metric_key": "latency:mean:ns",
        "status": "passed",
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
        "evidence_level": "reported",
        "has_raw_evidence": False,
        "source_native": True,
        "source": "flashinfer-bench",
        "definition_name": "definition",
        "solution_name": "solution",
        "author_directory": "author",
        "input_fingerprint": "inputs",
        "reference_digest": "reference",
        "max_absolute_error": 0.0,
        "max_relative_error": 0.0,
        "not_measured": False,
    },
    "implementations": {
        "operation_digest": "operation",
        "author_directory": "author",
        "solution_name": "solution",
        "definition_name": "definition",
        "language": "triton",
    },
    "operations": {
        "operation_digest": "operation",
        "name": "definition",
        "family": "gemm",
        "reference_digest": "reference",
    },
    "workloads": {
        "workload_digest": "workload",
        "operation_digest": "operation",
        "definition_name": "definition",
        "input_fingerprint": "inputs",
    },
    "environments": {
        "environment_digest": "environment",
        "gpu_product": GPU,
        "gpu_vendor": "nvidia",
        "gpu_architecture": "sm_90",
    },
}


def at(text: str) -> datetime:
    """A time of day 00:00 or a full ISO time, UTC."""
    return datetime.fromisoformat(text.removesuffix("Z"))


class Index:
    """Rows of the published tables, and the tables derived from them."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {name: [] for name in PUBLISHED}

    def add(self, table: str, **values: Any) -> None:
        """One published row."""
        row = {
            "dataset": DATASET,
            "revision": "r1",
            "path": f"{table}.jsonl",
            "line": len(self.rows[table]) + 1,
            "parser_version": "1",
            "publication_id": "00000001",
            "published_at": at("2026-01-01"),
            **_DEFAULTS.get(table, {}),
            **values,
        }
        if table == "implementations":
            row.setdefault("content_digest", f"content of {row['implementation_digest']}")
            row.setdefault("document_digest", f"document of {row['content_digest']}")
        unknown = row.keys() - set(PUBLISHED[table].names)
        if unknown:
            raise KeyError(f"table {table} has no column {', '.join(sorted(unknown))}")
        self.rows[table].append(row)

    def run(
        self, digest: str, latency_ns: float | None, observed: str = "2026-02-01", **values: Any
    ) -> None:
        """A run; without a latency it has failed, unless its status says otherwise."""
        if latency_ns is None:
            values = {"status": "runtime_error", "metric_key": "none", **values}
            values.setdefault("comparison_key", "group without metric")
        self.add(
            "runs",
            run_digest=digest,
            primary_value=latency_ns,
            observed_at=at(observed),
            external_id=f"trace/{digest}",
            **values,
        )

    def correction(self, action: str, target: str, kind: str = "run", **values: Any) -> None:
        """A correction."""
        self.add(
            "corrections",
            correction_id=f"{action} {target} {len(self.rows['corrections'])}",
            action=action,
            target_kind=kind,
            target_digest=target,
            author="a curator",
            reason="because",
            effective_at=at("2026-03-01"),
            **values,
        )

    def revision(self, name: str, revised: str, authors: Sequence[str] | None = None) -> None:
        """A dataset revision that was read."""
        self.add(
            "revisions",
            revision=name,
            revision_at=at(revised),
            authors=list(authors) if authors else None,
            snapshot_id=f"{name} {authors}",
        )

    def file(self, revision: str, path: str, content: str, inputs: str = "", **values: Any) -> None:
        """A file of a dataset revision."""
        self.add(
            "source_files",
            revision=revision,
            path=path,
            line=None,
            file_digest=content,
            inputs_digest=inputs,
            **values,
        )

    def derive(self, *wanted: str) -> duckdb.DuckDBPyConnection:
        """A DuckDB with the wanted tables, made by the files under `sql/`."""
        connection = self.published()
        derive(connection, wanted, published_columns())
        return connection

    def published(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB with the rows as the tables that every build starts from."""
        connection = duckdb.connect()
        for name, schema in PUBLISHED.items():
            table = pa.Table.from_pylist(self.rows[name], schema=schema)
            connection.from_arrow(table).create(f"published_{name}")
        connection.from_arrow(publications_table([])).create("published_publications")
        connection.from_arrow(LEFT_OUT.empty_table()).create("published_left_out")
        return connection

    def build(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB with every table and view, made and checked as every build makes them.

        Raises:
            AssertionError: a table that is not what its header promises.
            FailedStatementError: a statement that does not run.
        """
        connection = self.published()
        build = DatabaseBuild(connection)
        broken = [
            f"{table.file.path}: {check.name} of {check.examples}"
            for table in sql_catalog()
            for check in build_table(build, table).failures
        ]
        if broken:
            raise AssertionError("\n".join(broken))
        return connection

    def table(self, name: str, *columns: str, where: str = "true") -> list[tuple[Any, ...]]:
        """Columns of a derived table, in the order of its rows' values."""
        relation = self.derive(name).table(name).filter(where)
        named = [duckdb.ColumnExpression(column) for column in columns]
        return relation.select(*named).order("all").fetchall()
