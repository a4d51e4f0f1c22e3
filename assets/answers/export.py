"""Export the catalog in the form of the public index: `{"table": …, "row": …}` lines.

One file of `sql/export/` a table. A column `manifest` (or `manifest.<part>`) is the identity body
of a manifest, and `….metadata` beside it its editorial part; `value.fraction` stands in for a
`value` that is no integer. Identifiers are made from digests, so that two exports of the same
rows are equal, byte for byte.
"""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from assets.answers.output_file import appearing
from assets.answers.values import json_value
from assets.tables.errors import WarehouseError
from assets.tables.published import open_with_published
from assets.tables.warehouse import Warehouse

TABLES = (
    "sources",
    "projects",
    "operations",
    "operation_aliases",
    "workloads",
    "implementations",
    "benchmark_runs",
    "measurements",
    "record_events",
    "artifacts",
)
_BATCH_ROWS = 10_000


def export_catalog(warehouse: Warehouse, path: Path) -> dict[str, int]:
    """Write the catalog as zstd-compressed JSON lines (plain ones unless the name ends in `.zst`).

    The file appears whole or not at all.

    Returns:
        Rows by table.

    Raises:
        WarehouseError: no database, publications that cannot be read, a path that cannot be
            written.
    """
    compression = "zstd" if path.suffix == ".zst" else None
    try:
        with (
            open_with_published(warehouse, ("runs",)) as connection,
            appearing(path) as temporary,
            pa.output_stream(str(temporary), compression=compression) as stream,
        ):
            return {table: _write(connection, table, stream) for table in TABLES}
    except OSError as error:
        raise WarehouseError(f"{path}: cannot be written ({error.strerror or error})") from error
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        raise WarehouseError(f"the catalog cannot be read: {first_line}") from error


def _write(connection: duckdb.DuckDBPyConnection, table: str, stream: pa.NativeFile) -> int:
    query = resources.files("sql").joinpath("export", f"{table}.sql").read_text()
    result = connection.execute(query)
    names = [column[0] for column in result.description or ()]
    written = 0
    for values in _fetched(result):
        row = _row(dict(zip(names, values, strict=True)))
        line = json.dumps({"table": table, "row": row}, ensure_ascii=False, separators=(",", ":"))
        stream.write(line.encode("utf-8", "replace") + b"\n")
        written += 1
    return written


def _fetched(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while batch := result.fetchmany(_BATCH_ROWS):
        yield from batch


def _row(values: Mapping[str, Any]) -> dict[str, object]:
    row: dict[str, object] = {}
    for name, value in values.items():
        if name.endswith(".metadata"):
            continue
        if name == "value.fraction":
            row["value"] = row["value"] if value is None else value
        elif name.partition(".")[0] == "manifest":
            manifest = _manifest(value, values[f"{name}.metadata"])
            _, _, part = name.partition(".")
            if part:
                row.setdefault("manifest", {})[part] = manifest  # type: ignore[index]
            else:
                row["manifest"] = manifest
        else:
            row[name] = json_value(value)
    return row


def _manifest(canonical: str, metadata: str | None) -> dict[str, object]:
    body = json.loads(canonical)
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": json.loads(metadata) if metadata else {},
        "spec": body["spec"],
    }
