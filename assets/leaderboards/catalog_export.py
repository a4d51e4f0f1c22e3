"""Read a catalog export of the public index: `{"table": ..., "row": {...}}` lines, zstd or plain.

Only what `verify_catalog.py` needs is kept of each row; a row of another table is counted. What a
row must hold to be verified is said in `catalog_rows.py`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from assets.leaderboards.catalog_rows import CHECKED, row_problem
from assets.traces.untrusted_text import visible_line

Row = dict[str, Any]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A document of this many bytes is no row of a catalog; what a parser makes of it takes many times
# as much.
_MOST_LINE_BYTES = 64 * 1024**2
_MOST_EXAMPLE_CHARACTERS = 200


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
        if table not in CHECKED:
            continue
        problem = row_problem(table, row)
        if problem is not None:
            raise CatalogExportError(f"{path}:{number}: {problem}")
        export.rows(table).append(row)
    _check_references(export)
    if not export.benchmark_runs:
        raise CatalogExportError(f"{path}: no rows of benchmark_runs; is this a catalog export?")
    return export


def _check_references(export: CatalogExport) -> None:
    for table in CHECKED.keys() - {"record_events"}:
        identifiers = Counter(row["id"] for row in export.rows(table))
        twice = next((name for name, times in identifiers.items() if times > 1), None)
        if twice is not None:
            raise CatalogExportError(f"{export.path}: {table} has {_short(twice)} twice")
    objects = CatalogObjects(export)
    for row in export.benchmark_runs:
        if row["workloadId"] not in objects.workloads:
            raise CatalogExportError(
                f"{export.path}: run {_short(row['id'])} has no workload in the file"
            )
        if row["implementationId"] not in objects.implementations:
            raise CatalogExportError(
                f"{export.path}: run {_short(row['id'])} has no implementation in the file"
            )


def _parse(path: Path, number: int, line: bytes) -> tuple[str, Row]:
    if len(line) > _MOST_LINE_BYTES:
        raise CatalogExportError(f"{path}:{number}: has more than {_MOST_LINE_BYTES} bytes")
    try:
        value = json.loads(line)
    except RecursionError as error:
        raise CatalogExportError(f"{path}:{number}: not JSON (nested too deeply)") from error
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


def _short(text: str) -> str:
    return visible_line(text[:_MOST_EXAMPLE_CHARACTERS])
