"""Readers in processes of their own, while ingestion runs: never blocked, never half a build."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pipelines.conftest import ROOT
from tests.warehouses import ingest_into

READERS = 2

# Opens the database again and again, as a notebook or the command does, and says what it saw.
_READER = """
import json, sys, time
from pathlib import Path
import duckdb

database, stop, ready = (Path(argument) for argument in sys.argv[1:4])
seen, slowest, opened = set(), 0.0, 0
while not stop.exists():
    began = time.monotonic()
    with duckdb.connect(str(database), read_only=True) as connection:
        [tables] = connection.execute(
            "select count(*) from duckdb_tables() where not internal"
        ).fetchall()
        [counts] = connection.execute(
            "select (select count(*) from runs), (select count(*) from run_eligibility),"
            " (select count(*) from ranked_runs), (select count(*) from record_events),"
            " (select sum(new_runs) from publications)"
        ).fetchall()
    seen.add((*tables, *(int(number) for number in counts)))
    slowest = max(slowest, time.monotonic() - began)
    opened += 1
    ready.touch()
print(json.dumps({"seen": sorted(seen), "slowest": slowest, "opened": opened}))
"""

# Ingests one author after the other, each time with a new publication and a new database.
_WRITER = """
import sys
from pathlib import Path
from tests.warehouses import ingest_into

for author in sys.argv[2:]:
    ingest_into(Path(sys.argv[1]), author)
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    root = tmp_path / "warehouse"
    ingest_into(root, "baseline")
    return root


def test_readers_see_whole_databases_only_and_wait_for_nobody(
    warehouse: Path, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    ready = [tmp_path / f"ready-{number}" for number in range(READERS)]
    database = warehouse / "kernelindex.duckdb"
    readers = [start(_READER, database, stop, path) for path in ready]
    try:
        deadline = time.monotonic() + 60
        while not all(path.exists() for path in ready):
            assert time.monotonic() < deadline, "the readers did not start"
            time.sleep(0.05)
        authors = ("kernelindex-torch", "kernelindex-triton")
        writer = start(_WRITER, warehouse, *authors)
        _, said = writer.communicate(timeout=120)
        assert writer.returncode == 0, said
        for path in ready:
            path.unlink()
        while not all(path.exists() for path in ready):
            assert time.monotonic() < deadline + 120, "a reader stopped"
            time.sleep(0.05)
    finally:
        stop.touch()
        ended = [reader.communicate(timeout=60) for reader in readers]
    assert [reader.returncode for reader in readers] == [0] * READERS, ended
    reports = [json.loads(out) for out, _ in ended]
    for report in reports:
        for _, runs, judged, ranked, events, published in report["seen"]:
            # Every table is of the same build: half a build has other sums.
            assert runs == judged == published
            assert 0 < events <= ranked <= runs
        assert len({tables for tables, *_ in report["seen"]}) == 1
        assert report["opened"] > 3
        # A blocked reader waits for a build; it takes seconds, an opening does not.
        assert report["slowest"] < 20
    states = {tuple(state[1:]) for report in reports for state in report["seen"]}
    assert len(states) >= 2, "no reader saw the index change"
