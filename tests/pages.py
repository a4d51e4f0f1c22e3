"""Pages whose `console` blocks are real: run every `$ kernelindex …` and put its output in.

`python -m tests.pages` writes the pages anew; `tests/pipelines/test_pages.py` compares. What
differs from machine to machine (times, folders, sizes, versions) is masked.
"""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "docs" / "commands.md", ROOT / "docs" / "corrections.md")

_BLOCK = re.compile(r"(?P<open>```console\n)(?P<body>.*?)(?P<close>```)", re.DOTALL)
_COMMAND = re.compile(r"^\$ kernelindex (?P<arguments>.*?)(?: \| head -(?P<lines>\d+))?$")
_MASKS = (
    (re.compile(r"(?<=0000000\d-)\d{8}T\d{6}Z"), "20260101T000000Z"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "2026-01-01 00:00 UTC"),
    (re.compile(r"(?<=[1-9] {2})\d{4}-\d\d-\d\d \d\d:\d\d(?= )"), "2026-01-01 00:00"),
    (re.compile(r"(?<=accessed )\d{4}-\d\d-\d\d"), "2026-01-01"),
    (re.compile(r"(?<=Reader, )\d{4}-\d\d-\d\d"), "2026-01-01"),
    (re.compile(r"[\d.]+ [KMGT]iB"), "N MiB"),
    (re.compile(r"^python \d.*$", re.MULTILINE), "python 3.11, kernelindex-pipeline 0.1.0, ..."),
)

Run = Callable[[list[str]], str]


def refreshed(page: str, run: Run) -> str:
    """The page with the output of every command as it is now."""

    def block(match: re.Match[str]) -> str:
        lines: list[str] = []
        for line in match["body"].splitlines():
            command = _COMMAND.match(line)
            if command is None:
                continue  # output of before
            output = run(shlex.split(command["arguments"])).rstrip("\n").splitlines()
            shown = output[: int(command["lines"])] if command["lines"] else output
            lines += [line, *(text.rstrip() for text in shown)]
            if len(shown) < len(output):
                lines.append("...")
        return match["open"] + "".join(f"{line}\n" for line in lines) + match["close"]

    return _BLOCK.sub(block, page)


def runner(folder: Path) -> Run:
    """Runs commands on a warehouse of their own, in a folder that may hold files."""
    from pipelines.cli import app

    warehouse = folder / "warehouse"
    environment = {
        "KERNELINDEX_WAREHOUSE": str(warehouse),
        "DAGSTER_HOME": str(folder / "dagster"),
        "COLUMNS": "80",
        "TERM": "dumb",
    }

    def run(arguments: list[str]) -> str:
        before = Path.cwd()
        os.chdir(folder)
        try:
            result = CliRunner().invoke(app, arguments, env=environment, prog_name="kernelindex")
        finally:
            os.chdir(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return masked(result.output.replace(str(folder.resolve()) + "/", ""))

    return run


def masked(text: str) -> str:
    """A text without what differs from machine to machine."""
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text


def write_pages() -> None:
    """Write every page anew."""
    with tempfile.TemporaryDirectory() as folder:
        run = runner(Path(folder))
        for page in PAGES:
            page.write_text(refreshed(page.read_text(), run))


if __name__ == "__main__":
    sys.exit(write_pages())
