"""Read a catalog export of the public index: `{"table": ..., "row": {...}}` lines, zstd or plain.

Only what `verify_catalog.py` needs is kept of each row; a row of another table is counted.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_NEEDED = {
    "operations": ("id", "semanticDigest", "name", "family", "manifest"),
    "workloads": ("id", "operationId", "workloadDigest", "manifest"),
    "implementations": ("id", "operationId", "implementationDigest", "title", "manifest"),
    "benchmark_runs": (
        "id",
        "runDigest",
        "implementationId",
        "workloadId",
        "status",
        "observedAt",
        "publishedAt",
        "protocolKey",
        "environmentKey",
        "correctnessKey",
        "comparisonKey",
        "primaryMetric",
        "primaryStatistic",
        "primaryValue",
        "primaryUnit",
        "sourceNative",
        "sourceAvailable",
        "hasRawEvidence",
        "reproducedByKernelindex",
        "independentReplicationCount",
        "manifest",
    ),
    "record_events": ("comparisonKey", "runId", "previousRunId", "cause", "at"),
}


# What of a run's manifest is read without asking whether it is there.
_MANIFEST_PARTS = (
    ("run", "kind"),
    ("run", "spec", "implementationDigest"),
    ("run", "spec", "workloadDigest"),
    ("run", "metadata", "name"),
    ("protocol", "kind"),
    ("protocol", "spec", "measurement", "primaryStatistic"),
    ("environment", "kind"),
    ("environment", "spec", "hardware", "product"),
    ("environment", "spec", "hardware", "architecture"),
)


class CatalogExportError(Exception):
    """The file is no catalog export; the message names the line."""


@dataclass
class CatalogExport:
    """The rows that matter, by table, and how many rows each table of the file has."""

    path: Path
    counts: Counter[str] = field(default_factory=Counter)
    operations: list[Row] = field(default_factory=list)
    workloads: list[Row] = field(default_factory=list)
    implementations: list[Row] = field(default_factory=list)
    benchmark_runs: list[Row] = field(default_factory=list)
    record_events: list[Row] = field(default_factory=list)

    def rows(self, table: str) -> list[Row]:
        """The kept rows of a table."""
        kept: list[Row] = getattr(self, table)
        return kept


class CatalogObjects:
    """What runs refer to, by the export's identifiers."""

    def __init__(self, export: CatalogExport) -> None:
        self.workloads = {row["id"]: row for row in export.workloads}
        self.implementations = {row["id"]: row for row in export.implementations}


def read_catalog_export(path: Path) -> CatalogExport:
    """Read an export.

    Raises:
        CatalogExportError: a file that cannot be read, no JSON lines, a row without a field that
            every export has, or no runs at all.
    """
    export = CatalogExport(path)
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        table, row = _parse(path, number, line)
        export.counts[table] += 1
        needed = _NEEDED.get(table)
        if needed is None:
            continue
        missing = [name for name in needed if name not in row]
        if missing:
            raise CatalogExportError(
                f"{path}:{number}: a row of {table} without {', '.join(missing)}"
            )
        if table == "benchmark_runs":
            _check_manifest(path, number, row["manifest"])
        export.rows(table).append(row)
    _check_references(export)
    if not export.benchmark_runs:
        raise CatalogExportError(f"{path}: no rows of benchmark_runs; is this a catalog export?")
    return export


def _check_manifest(path: Path, number: int, manifest: object) -> None:
    for part in _MANIFEST_PARTS:
        value = manifest
        for name in part:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            raise CatalogExportError(f"{path}:{number}: the run's manifest lacks {'.'.join(part)}")


def _check_references(export: CatalogExport) -> None:
    objects = CatalogObjects(export)
    for row in export.benchmark_runs:
        if row["workloadId"] not in objects.workloads:
            raise CatalogExportError(f"{export.path}: run {row['id']} has no workload in the file")
        if row["implementationId"] not in objects.implementations:
            raise CatalogExportError(
                f"{export.path}: run {row['id']} has no implementation in the file"
            )


def _parse(path: Path, number: int, line: bytes) -> tuple[str, Row]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise CatalogExportError(f"{path}:{number}: not JSON ({error})") from error
    match value:
        case {"table": str(table), "row": dict(row)}:
            return table, row
    raise CatalogExportError(f'{path}:{number}: not of the form {{"table": ..., "row": ...}}')


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as raw:
            if raw.read(len(_ZSTD_MAGIC)) != _ZSTD_MAGIC:
                raw.seek(0)
                yield from raw
                return
        with pa.input_stream(str(path), compression="zstd") as stream:
            rest = b""
            while block := stream.read(1 << 20):
                *lines, rest = (rest + block).split(b"\n")
                yield from lines
            yield rest
    except OSError as error:
        raise CatalogExportError(f"{path}: cannot be read ({error})") from error
