"""How commands speak: tables and messages for people, one JSON object for programs."""

from typing import NoReturn

import typer
from rich.console import Console

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)

ANSWER_IS_NO = 1
WRONG_INPUT = 2


def fail(message: str, code: int = WRONG_INPUT) -> NoReturn:
    """Say what is wrong in one line on stderr and end with an exit code."""
    stderr.print("[bold red]error:[/] ", end="")
    stderr.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(code)
