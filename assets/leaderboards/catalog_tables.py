"""A catalog export as the tables that the files under `sql/` read.

The columns are those that rankings and caveats need; names and meanings are the warehouse's.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from assets.leaderboards.catalog_export import CatalogExport, CatalogObjects, Row
from assets.manifests.canonical import canonical_json
from assets.tables.contracts import PUBLISHED


def load_tables(
    connection: duckdb.DuckDBPyConnection, export: CatalogExport, objects: CatalogObjects
) -> list[str]:
    """Make the tables that rankings and caveats read, and return their names.

    A run is known by the export's own identifier, which is what the public index breaks ties by.
    """
    # Workloads are told apart by what the run's name keeps of the entry's identifier.
    entries: dict[str, set[str]] = {}
    for row in export.benchmark_runs:
        entries.setdefault(row["workloadId"], set()).add(entry_of(row))
    runs = [_run(row, objects) for row in export.benchmark_runs]
    _table(connection, "published_runs", PUBLISHED["runs"], runs)
    _table(connection, "identity_aliases", _IDENTITY_ALIASES, [])
    _table(connection, "trials", _TRIALS, [])
    _table(connection, "corrections", _CORRECTIONS, list(_corrections(export)))
    _table(connection, "superseded_implementations", _SUPERSEDED, [])
    _table(connection, "dataset_revisions", _DATASET_REVISIONS, [])
    _table(
        connection,
        "workloads",
        _WORKLOADS,
        [
            {"workload_digest": row["id"], "input_fingerprints": sorted(entries.get(row["id"], ()))}
            for row in export.workloads
        ],
    )
    _table(
        connection,
        "implementations",
        _IMPLEMENTATIONS,
        [
            {"implementation_digest": row["id"], "operation_digest": row["operationId"]}
            for row in export.implementations
        ],
    )
    environments = {row["environmentKey"]: row for row in export.benchmark_runs}
    _table(
        connection,
        "environments",
        _ENVIRONMENTS,
        [
            {
                "environment_digest": key,
                "gpu_product": hardware["product"],
                "gpu_architecture": hardware["architecture"],
            }
            for key, row in environments.items()
            if (hardware := row["manifest"]["environment"]["spec"]["hardware"])
        ],
    )
    _table(
        connection,
        "published_operations",
        _MANIFESTS_OF_OPERATIONS,
        [
            {
                "operation_digest": row["id"],
                "family": row["family"],
                "canonical_json": canonical_json(row["manifest"]),
                "constant_axes_json": canonical_json(
                    {
                        name: axis["value"]
                        for name, axis in row["manifest"]["spec"]["axes"].items()
                        if axis["role"] == "constant"
                    }
                ),
            }
            for row in export.operations
        ],
    )
    _table(
        connection,
        "published_workloads",
        _MANIFESTS_OF_WORKLOADS,
        [
            {
                "workload_digest": row["id"],
                "operation_digest": row["operationId"],
                "axes_json": canonical_json(row["manifest"]["spec"]["axes"]),
                "canonical_json": canonical_json(row["manifest"]),
            }
            for row in export.workloads
        ],
    )
    return [name for (name,) in connection.sql("select table_name from duckdb_tables()").fetchall()]


def entry_of(run: Row) -> str:
    """What the run's name keeps of the identifier of its workload entry."""
    name: str = run["manifest"]["run"]["metadata"]["name"]
    return name.rpartition("-")[2]


def _run(row: Row, objects: CatalogObjects) -> Row:
    spec = row["manifest"]["run"]["spec"]
    native = spec.get("sourceNative", {})
    return {
        "run_digest": row["id"],
        "operation_digest": objects.workloads[row["workloadId"]]["operationId"],
        "workload_digest": row["workloadId"],
        "implementation_digest": row["implementationId"],
        "environment_digest": row["environmentKey"],
        "comparison_key": row["comparisonKey"],
        # The entry tells inputs apart, and with them the strict groups.
        "input_fingerprint": entry_of(row),
        "status": row["status"],
        "primary_value": row["primaryValue"],
        "uncertainty_low_ns": row.get("uncertaintyLow"),
        "uncertainty_high_ns": row.get("uncertaintyHigh"),
        "evidence_level": _evidence_level(row),
        "source_native": row["sourceNative"],
        "source": native.get("source"),
        "observed_at": instant(row["observedAt"]),
        "published_at": instant(row["publishedAt"]),
        "reference_latency_ms": native.get("metrics", {}).get("reference_latency_ms"),
        "max_relative_error": spec.get("correctness", {}).get("maximumRelativeError"),
        "not_measured": False,
    }


def _evidence_level(row: Row) -> str:
    if row["independentReplicationCount"] >= 2:
        return "replicated"
    if row["reproducedByKernelindex"]:
        return "verified"
    complete = row["sourceAvailable"] and row["hasRawEvidence"]
    return "reproducible" if complete else "reported"


def instant(text: str) -> datetime:
    """A time of the export as UTC without a zone, as the tables hold it."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _corrections(export: CatalogExport) -> Iterator[Row]:
    for row in export.benchmark_runs:
        if row.get("retractedAt") is not None:
            yield {"action": "retract", "target_kind": "run", "target_digest": row["id"]}
        if row.get("supersedesId") is not None:
            yield {
                "action": "supersede",
                "target_kind": "run",
                "target_digest": row["supersedesId"],
            }


def _table(
    connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, rows: list[Row]
) -> None:
    connection.from_arrow(pa.Table.from_pylist(rows, schema=schema)).create(name)


def _texts(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.string()) for name in names]


# The columns of each table that the SQL files read here.
_IDENTITY_ALIASES = pa.schema(_texts("implementation_digest"))
_TRIALS = pa.schema(_texts("run_digest"))
_CORRECTIONS = pa.schema(_texts("action", "target_kind", "target_digest"))
_SUPERSEDED = pa.schema(_texts("implementation_digest"))
_DATASET_REVISIONS = pa.schema(
    [*_texts("dataset", "revision"), ("revision_at", pa.timestamp("us"))]
)
_WORKLOADS = pa.schema(
    [("workload_digest", pa.string()), ("input_fingerprints", pa.list_(pa.string()))]
)
_IMPLEMENTATIONS = pa.schema(_texts("implementation_digest", "operation_digest"))
_ENVIRONMENTS = pa.schema(_texts("environment_digest", "gpu_product", "gpu_architecture"))
_MANIFESTS_OF_OPERATIONS = pa.schema(
    _texts("operation_digest", "family", "canonical_json", "constant_axes_json")
)
_MANIFESTS_OF_WORKLOADS = pa.schema(
    _texts("workload_digest", "operation_digest", "axes_json", "canonical_json")
)
