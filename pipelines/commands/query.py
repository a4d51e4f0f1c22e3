"""`kernelindex query`: any question in SQL, read only."""

import json as json_text
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer

from assets.answers.errors import QueryError
from assets.answers.output_file import appearing
from assets.answers.values import Rows, json_value, run_query, write_parquet
from pipelines.commands.index import AsOf, Json, Raw, open_index
from pipelines.commands.output import VisibleStream, add_row, fail, json_of, say, stdout, table

_SHOWN_ROWS = 200


class Format(StrEnum):
    """How a result is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def query(
    sql: Annotated[str, typer.Argument(help="one statement; `-` reads it from standard input")],
    format: Annotated[
        Format | None,
        typer.Option("--format", help="default: by --output's ending, else table"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="write to this file, whole or not at all")
    ] = None,
    raw: Raw = False,
    json: Json = False,
    as_of: AsOf = None,
) -> None:
    """Ask in SQL. Nothing can be changed, and no file but the database can be read."""
    chosen = Format.JSON if json else format or _by_ending(output)
    if json and format not in (None, Format.JSON):
        fail("--json and --format contradict each other")
    if chosen is Format.PARQUET and output is None:
        fail("--format parquet needs --output FILE")
    text = sys.stdin.read() if sql == "-" else sql
    if not text.strip():
        fail("the statement is empty")
    with open_index(as_of) as connection:
        if output is None:
            _write(run_query(connection, text), chosen, raw=raw)
            return
        with _written(output) as temporary:
            if chosen is Format.PARQUET:
                written = write_parquet(connection, text, temporary)
            else:
                written = _write_text(run_query(connection, text), chosen, temporary)
        say(f"{written:,} rows written to {output}")


def _by_ending(output: Path | None) -> Format:
    ending = output.suffix.removeprefix(".").lower() if output else ""
    return Format(ending) if ending in ("csv", "json", "parquet") else Format.TABLE


def _write(rows: Rows, chosen: Format, *, raw: bool) -> None:
    if chosen is Format.TABLE:
        _print_table(rows)
    elif chosen is Format.JSON:
        _write_json(rows, sys.stdout)
    elif sys.stdout.isatty() and not raw:
        rows.write_csv(VisibleStream(sys.stdout))
    else:
        rows.write_csv(sys.stdout)


def _write_json(rows: Rows, stream: TextIO) -> int:
    """One array, an object a line, written as rows come."""
    written = 0
    stream.write("[")
    for item in rows.as_objects():
        stream.write(",\n " if written else "\n ")
        stream.write(json_of(item, stream))
        written += 1
    stream.write("\n]\n" if written else "]\n")
    return written


def _write_text(rows: Rows, chosen: Format, path: Path) -> int:
    with path.open("w", encoding="utf-8", newline="") as stream:
        # A table is for the terminal; in a file it is CSV.
        return _write_json(rows, stream) if chosen is Format.JSON else rows.write_csv(stream)


@contextmanager
def _written(output: Path) -> Iterator[Path]:
    try:
        with appearing(output) as temporary:
            yield temporary
    except OSError as error:
        raise QueryError(f"{output}: cannot be written ({error.strerror or error})") from error


def _print_table(rows: Rows) -> int:
    made = table([(name, "fold") for name in rows.columns])
    shown = 0
    for row in rows:
        if shown == _SHOWN_ROWS:
            say(f"the first {_SHOWN_ROWS} rows; --format csv, json or parquet gives all of them")
            break
        add_row(made, *(_cell(value) for value in row))
        shown += 1
    stdout.print(made)
    say(f"{shown:,} row{'' if shown == 1 else 's'}")
    return shown


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    plain = json_value(value)
    if isinstance(plain, dict | list):
        return json_text.dumps(plain, ensure_ascii=False)
    return str(plain)
