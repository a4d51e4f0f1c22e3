"""Names that others chose reach no terminal as they are, whatever command prints them."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from assets.tables.warehouse import Warehouse
from tests.builders import Json, dataset, definition, solution, trace, write_files
from tests.pipelines.conftest import ROOT
from tests.warehouses import ingest_into

ESCAPES = "\x1b[2J\x1b]0;owned\x07"
TURN = "\u202etxet"
MARK = f"{ESCAPES}{TURN}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index in which every name and text that a dataset may choose is hostile."""
    root = tmp_path_factory.mktemp("hostile")
    name = f"solution {MARK}"
    source = [{"path": "main.py", "content": f"# {MARK}\ndef run(x, w): ...\n"}]
    write_files(
        dataset(
            root / "dataset",
            definition=definition(description=f"adds {MARK}"),
            solution=solution(name, author=f"author {MARK}", sources=source),
            traces=[
                trace(
                    solution=name,
                    evaluation__environment__hardware=f"NVIDIA H200 {MARK}",
                    evaluation__environment__libs={"torch": f"2 {MARK}"},
                ),
                trace(
                    solution=name,
                    evaluation__status="RUNTIME_ERROR",
                    evaluation__performance=None,
                    evaluation__correctness=None,
                    evaluation__log=f"log {MARK}",
                ),
                trace(solution=f"unknown {MARK}"),
            ],
        ),
        {"dataset.json": {"id": "own/data", "title": f"title {MARK}", "url": "https://a.example"}},
    )
    ingest_into(root / "warehouse", dataset=str(root / "dataset"))
    return root / "warehouse"


def environment(warehouse: Path, **changes: str) -> dict[str, str]:
    return {
        **os.environ,
        "KERNELINDEX_WAREHOUSE": str(warehouse),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "200",
        **changes,
    }


def run(warehouse: Path, *command: str, **changes: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *command],
        env=environment(warehouse, **changes),
        capture_output=True,
        check=False,
    )


def in_terminal(warehouse: Path, *command: str) -> bytes:
    """What a command sends to a terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *command],
        env=environment(warehouse, TERM="dumb"),
        stdout=side,
        stderr=side,
        stdin=subprocess.DEVNULL,
    )
    os.close(side)
    sent = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        sent += piece
    process.wait()
    os.close(main)
    return sent


def digest_of(warehouse: Path, column: str, table: str) -> str:
    found = run(warehouse, "query", f"select min({column}) as d from {table}", "--json")
    [row] = json.loads(found.stdout)
    return str(row["d"])


OPERATION = "toy_add_h8"
COMMANDS = [
    ("status",),
    ("revisions",),
    ("top", OPERATION),
    ("show", OPERATION),
    ("show", "RUN"),
    ("show", "RUN", "--cite"),
    ("show", "IMPLEMENTATION"),
    ("show", "FAILED"),
    ("compare", "RUN", "FAILED"),
    ("source", "RUN"),
    ("resolve", "--operation", OPERATION),
    ("quarantine", "--reason", "UNKNOWN_SOLUTION"),
    ("query", "select solution_name, author, canonical_json from implementations"),
    ("query", "select solution_name from implementations", "--format", "csv"),
    ("query", "select solution_name from implementations", "--json"),
    ("query", f"select '{TURN}' as \"{TURN}\""),
    ("query", f'select * from "{TURN}"'),
    ("show", f"nothing {MARK}"),
    ("top", f"nothing {MARK}"),
    ("ingest", "--dataset", f"nothing {MARK}"),
    ("verify-catalog", f"nothing {MARK}"),
]


@pytest.fixture(scope="module")
def digests(hostile: Path) -> dict[str, str]:
    return {
        "RUN": digest_of(hostile, "run_digest", "runs where status = 'passed'"),
        "FAILED": digest_of(hostile, "run_digest", "runs where status <> 'passed'"),
        "IMPLEMENTATION": digest_of(hostile, "implementation_digest", "implementations"),
    }


@pytest.mark.integration
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: ascii(" ".join(command)))
def test_no_command_passes_on_what_moves_a_terminal(
    hostile: Path, digests: dict[str, str], command: tuple[str, ...]
) -> None:
    sent = in_terminal(hostile, *(digests.get(part, part) for part in command))
    text = sent.decode()
    assert "Traceback" not in text
    for letter in ("\x1b]", "\x1b[2J", "\x07", "\u202e"):
        assert letter not in text, command


def test_a_source_that_goes_to_a_file_is_what_was_published(hostile: Path) -> None:
    run_digest = digest_of(hostile, "run_digest", "runs")
    assert MARK.encode() in run(hostile, "source", run_digest).stdout
    assert MARK.encode() in in_terminal(hostile, "source", run_digest, "--raw")


@pytest.mark.parametrize("locale", ["C", "POSIX"])
@pytest.mark.parametrize("coerced", [True, False])
def test_no_locale_ends_a_command(hostile: Path, locale: str, coerced: bool) -> None:
    ascii_only = {} if coerced else {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for command in (("show", OPERATION), ("query", "select 'größe' as é", "--json")):
        found = run(hostile, *command, LC_ALL=locale, **ascii_only)
        assert b"Traceback" not in found.stderr, found.stderr
        assert found.returncode == 0
    assert json.loads(found.stdout) == [{"é": "größe"}]


def test_arguments_that_are_no_text_are_refused_in_one_line(hostile: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    for command in (("show", odd), ("query", f"select '{odd}'")):
        found = run(hostile, *command)
        assert found.stderr.count(b"\n") == 1
        assert b"not UTF-8" in found.stderr
        assert found.returncode == 2


def test_the_index_keeps_names_as_they_were_written(hostile: Path) -> None:
    found = run(hostile, "query", "select solution_name from implementations", "--json")
    names: list[Json] = json.loads(found.stdout)
    assert names == [{"solution_name": f"solution {MARK}"}]
    assert Warehouse(hostile).database.is_file()
