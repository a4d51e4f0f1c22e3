"""How commands speak: tables and messages for people, JSON alone on stdout for programs.

Names, paths and logs come from strangers, so whatever is printed for people shows its unseen
characters as escapes. Nothing else in `pipelines` writes to a terminal.
"""

import io
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from assets.traces.untrusted_text import json_text, visible, visible_line


class PlainConsole(Console):
    """A console that sends no control character but its own, whatever a text holds."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of something to print, with escapes for what cannot be seen."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


stdout = PlainConsole(highlight=False)
stderr = PlainConsole(stderr=True, highlight=False)

ANSWER_IS_NO = 1
WRONG_INPUT = 2
PROGRAM = "kernelindex"


def program() -> str:
    """What to type to run this program again: its name, or its path where no name leads to it."""
    invoked = Path(sys.argv[0])
    on_path = shutil.which(PROGRAM)
    if invoked.name != PROGRAM or (on_path and Path(on_path).samefile(invoked)):
        return PROGRAM
    return sys.argv[0]


def fail(message: str, code: int = WRONG_INPUT) -> NoReturn:
    """Say what is wrong in one line on stderr and end with an exit code."""
    stderr.print("[bold red]error:[/] ", end="")
    stderr.print(visible(message), markup=False, soft_wrap=True)
    raise typer.Exit(code)


def no(message: str, candidates: Iterable[str] = ()) -> NoReturn:
    """Say that the answer is no, with what was meant perhaps, and end with exit code 1."""
    stderr.print(visible(message), markup=False, soft_wrap=True)
    listed = list(candidates)
    if listed:
        stderr.print("perhaps:", markup=False)
        for candidate in listed:
            stderr.print(f"  {visible_line(candidate)}", markup=False, soft_wrap=True)
    raise typer.Exit(ANSWER_IS_NO)


def say(message: str) -> None:
    """A message for people; never on stdout."""
    stderr.print(visible(message), markup=False, soft_wrap=True)


def show(text: str = "", style: str | None = None) -> None:
    """One line of an answer for people."""
    stdout.print(Text(visible(text), style=style or ""), soft_wrap=True)


def print_json(value: object, indent: int | None = None) -> None:
    """One JSON value, alone on stdout."""
    sys.stdout.write(f"{json_of(value, sys.stdout, indent)}\n")


def json_of(value: object, stream: TextIO, indent: int | None = None) -> str:
    """JSON that a stream can take: with escapes for what its encoding has no characters for."""
    text = json_text(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, indent=indent)
    return text


class VisibleStream(io.TextIOBase):
    """A terminal that is sent no character which cannot be seen."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Write a text with escapes."""
        return self._terminal.write(visible(text))


def write_text(text: str, *, raw: bool) -> None:
    """A text as it is, alone on stdout; in a terminal with escapes, unless `raw` is asked for."""
    (sys.stdout if raw or not sys.stdout.isatty() else VisibleStream(sys.stdout)).write(text)
    sys.stdout.flush()  # before what is said on stderr about it


def speak_any_language() -> None:
    """Let no character end a command, whatever the locale: what has none becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def table(columns: Sequence[tuple[str, str]], title: str | None = None) -> Table:
    """A compact table; each column has a heading and `left`, `right`, `fold` or `cut`.

    `fold` and `cut` columns give way where the terminal is narrow; others never do.
    """
    made = Table(title=title and visible(title), box=SIMPLE_HEAD)
    made.title_justify, made.title_style = "left", "bold"
    made.show_edge = False
    made.padding = (0, 1, 0, 0)
    for heading, kind in columns:
        if kind in ("fold", "cut"):
            made.add_column(heading, overflow="fold" if kind == "fold" else "ellipsis")
        else:
            made.add_column(heading, justify="right" if kind == "right" else "left", no_wrap=True)
    return made


def add_row(made: Table, *values: object) -> None:
    """A row of plain text: nothing in it is markup."""
    cells = []
    for column, value in zip(made.columns, values, strict=True):
        cell = Text("" if value is None else visible(str(value)))
        # Only the cells of a column that gives way by being cut are kept on one line.
        cell.no_wrap, cell.overflow = column.overflow == "ellipsis", column.overflow
        cells.append(cell)
    made.add_row(*cells)
