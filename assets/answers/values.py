"""Values of the database as JSON, as text and in files: nothing is lost silently.

JSON has no NaN and no infinities: they are the strings "NaN", "Infinity" and "-Infinity", as the
JSON mapping of Protocol Buffers writes them. Every time in the database is UTC and is written
with a `Z`.
"""

import base64
import csv
import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Protocol
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from assets.answers.errors import QueryError
from assets.tables.reader import QUERY_MEMORY

_BATCH_ROWS = 50_000


def json_value(value: object) -> object:
    """A value that `json.dumps` writes as standard JSON."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return str(value)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def utc_text(value: datetime) -> str:
    """ISO 8601 with a `Z`; what has no zone is UTC."""
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    text = value.isoformat(timespec="milliseconds" if value.microsecond % 1000 == 0 else "auto")
    return f"{text.removesuffix('.000')}Z"


class TextSink(Protocol):
    """Whatever takes text."""

    def write(self, text: str, /) -> int:
        """Take some more."""
        ...


class Rows:
    """The result of a statement: column names, and rows that are fetched as they are asked for."""

    def __init__(self, result: duckdb.DuckDBPyConnection) -> None:
        self._result = result
        self.columns = _unique([column[0] for column in result.description or ()])

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        """Fetch rows.

        Raises:
            QueryError: a query that fails late, for want of memory, say.
        """
        while batch := self._fetched():
            yield from batch

    def _fetched(self) -> list[tuple[object, ...]]:
        try:
            return self._result.fetchmany(_BATCH_ROWS)
        except duckdb.Error as error:
            raise QueryError(_one_line(error)) from error

    def as_objects(self) -> Iterator[dict[str, object]]:
        """Rows as JSON objects."""
        for row in self:
            yield {name: json_value(value) for name, value in zip(self.columns, row, strict=True)}

    def write_csv(self, stream: TextSink) -> int:
        """Write RFC 4180 text with a header; null is an empty field. Returns the rows written."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        written = 0
        for row in self:
            writer.writerow([_csv_field(value) for value in row])
            written += 1
        return written


def write_parquet(connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> int:
    """Write the result of one statement as a Parquet file; returns the rows written.

    Raises:
        QueryError: as `run_query`.
    """
    try:
        relation = connection.sql(_single(connection, sql).query)
        reader: pa.RecordBatchReader = relation.to_arrow_reader(_BATCH_ROWS)
    except duckdb.Error as error:
        raise QueryError(_one_line(error)) from error
    names = _unique(reader.schema.names)
    fields = [field.with_name(name) for field, name in zip(reader.schema, names, strict=True)]
    schema = pa.schema(fields)
    written = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(reader):
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            written += batch.num_rows
    return written


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            yield reader.read_next_batch()
        except StopIteration:
            return
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise QueryError(_one_line(error)) from error


def run_query(connection: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    """Run one statement.

    Raises:
        QueryError: text that is no statement, or one that reads or writes what it may not.
    """
    try:
        return Rows(connection.execute(_single(connection, sql)))
    except duckdb.Error as error:
        raise QueryError(_one_line(error)) from error


def _single(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"one statement is expected, not {len(statements)}")
    return statements[0]


def _one_line(error: Exception) -> str:
    # A batch that Arrow asks for brings DuckDB's error as text.
    if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in str(error):
        return (
            f"the query needs more than {QUERY_MEMORY} of memory; ask for fewer rows or columns, "
            "or open the database with DuckDB itself"
        )
    lines = [line.strip() for line in str(error).splitlines()]
    useful = [line for line in lines if line.strip("^") and not line.startswith("LINE ")]
    return " ".join(useful)


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _csv_field(value: object) -> object:

    if value is None:
        return ""
    plain = json_value(value)
    if isinstance(plain, dict | list):
        return json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, bool):
        return str(plain).lower()
    return plain
