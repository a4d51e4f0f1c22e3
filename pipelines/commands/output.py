"""How commands speak: tables and messages for people, JSON alone on stdout for programs."""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)

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
    stderr.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(code)


def no(message: str, candidates: Iterable[str] = ()) -> NoReturn:
    """Say that the answer is no, with what was meant perhaps, and end with exit code 1."""
    stderr.print(message, markup=False, soft_wrap=True)
    listed = list(candidates)
    if listed:
        stderr.print("perhaps:", markup=False)
        for candidate in listed:
            stderr.print(f"  {candidate}", markup=False, soft_wrap=True)
    raise typer.Exit(ANSWER_IS_NO)


def say(message: str) -> None:
    """A message for people; never on stdout."""
    stderr.print(message, markup=False, soft_wrap=True)


def show(text: str = "", style: str | None = None) -> None:
    """One line of an answer for people."""
    stdout.print(Text(text, style=style or ""), soft_wrap=True)


def print_json(value: object, indent: int | None = None) -> None:
    """One JSON value, alone on stdout."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    sys.stdout.write(f"{text}\n")


def table(columns: Sequence[tuple[str, str]], title: str | None = None) -> Table:
    """A compact table; each column has a heading and `left`, `right`, `fold` or `cut`.

    `fold` and `cut` columns give way where the terminal is narrow; others never do.
    """
    made = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
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
        cell = Text("" if value is None else str(value))
        # Only the cells of a column that gives way by being cut are kept on one line.
        cell.no_wrap, cell.overflow = column.overflow == "ellipsis", column.overflow
        cells.append(cell)
    made.add_row(*cells)
