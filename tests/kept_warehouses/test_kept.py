"""A warehouse of an earlier version is opened, extended, repaired, compacted and exported."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from assets.leaderboards.build import build_database
from assets.tables.contracts import CONTRACTS
from assets.tables.database import published_rows
from assets.tables.integrity import examine_files
from assets.tables.row_checks import examine_rows
from assets.tables.warehouse import Warehouse
from tests.builders import dataset, solution, trace
from tests.kept_warehouses.make import unpack
from tests.pipelines.conftest import runner_on

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
LATER = CONTRACTS["runs"].version + 1
ARCHIVES = sorted(FOLDER.glob("version-*.tar.xz"))
Rows = dict[str, set[str]]


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    return Warehouse(unpack(request.param, tmp_path / "warehouse"))


def written_rows(root: Path) -> Rows:
    """Every row with its publication, by what the files say and no code of ours."""
    found: Rows = {}
    files = [*root.glob("generations/*/*.parquet"), *root.glob("publications/*/*.parquet")]
    for path in files:
        table = path.name.rpartition("-")[0]
        publication_id = path.parent.name.removeprefix("publication_id=")
        for row in pq.ParquetFile(path).read().to_pylist():
            row.setdefault("publication_id", publication_id)
            row.pop("published_at", None)
            found.setdefault(table, set()).add(json.dumps(row, default=str, sort_keys=True))
    return found


def rows_as_then(warehouse: Warehouse, before: Rows) -> Rows:
    """The rows as this version reads them, with the columns that they had."""
    found: Rows = {}
    for table, rows in before.items():
        columns = sorted(json.loads(next(iter(rows))))
        with warehouse.connect() as connection:
            read = published_rows(connection, warehouse, table).project(", ".join(columns))
            found[table] = {
                json.dumps(dict(zip(columns, row, strict=True)), default=str, sort_keys=True)
                for row in read.fetchall()
            }
    return found


# What says by which rules a row was made, and is another value under newer ones.
OF_THE_RULES = {"parser_version", "inputs_digest", "content_digest"}


def are_all_in(before: Rows, after: Rows) -> bool:
    """Whether every row is there still; what was made again may say that newer rules made it."""
    for table, rows in before.items():
        columns = json.loads(next(iter(rows))).keys() - OF_THE_RULES
        if not only(columns, rows) <= only(columns, after[table]):
            return False
    return True


def only(columns: Set[str], rows: set[str]) -> set[str]:
    """The rows with some of their columns."""
    return {
        json.dumps({name: json.loads(row)[name] for name in columns}, sort_keys=True)
        for row in rows
    }


def later_dataset(folder: Path) -> Path:
    """A dataset that no kept warehouse has."""
    return dataset(
        folder,
        {"dataset.json": {"id": "kernelindex/later", "url": None}},
        solution=solution(sources=[{"path": "main.py", "content": "def run(x, w): return 1\n"}]),
        traces=[trace(evaluation__performance__latency_ms=0.5)],
    )


def test_the_first_version_is_kept() -> None:
    assert ARCHIVES[0].name == "version-1.tar.xz"


def test_every_row_is_read_as_it_was_written(kept: Warehouse) -> None:
    before = written_rows(kept.root)
    assert before.keys() == CONTRACTS.keys()
    assert rows_as_then(kept, before) == before
    assert examine_files(kept).findings == []
    assert examine_rows(kept).findings == []
    assert build_database(kept).tables


@pytest.mark.integration
def test_it_is_used_as_one_of_today(
    kept: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner_on(kept.root, monkeypatch)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    before = written_rows(kept.root)

    # As it was left; a database of other tables says what to do and is built anew.
    run("doctor", "--repair")
    # All that was published but for a trial on a CPU, which today is in no table of runs.
    assert "146 runs" in run("status").stdout
    assert "triton_row_tile" in run("top", "rmsnorm_h128").stdout
    verdicts = "select count(*) as n from reproductions where controlled_ns is not null"
    reruns = json.loads(run("query", verdicts, "--json").stdout)
    run("export", "--output", str(tmp_path / "before.jsonl"))

    # With more: a dataset, a correction.
    run("ingest", "--dataset", str(later_dataset(tmp_path / "later")))
    [newest] = json.loads(
        run("query", "select run_digest from runs order by published_at desc limit 1", "--json")
        .stdout
    )  # fmt: skip
    run(
        *("correct", "attest", newest["run_digest"], "--author", "tests"),
        *("--reason", "seen", "--evidence", "https://example.org"),
    )
    run("doctor")

    # With a file of the rerun's neighbours gone: made again, with what lies beside it.
    lost = Path(kept.own_files("runs")[1])
    lost.unlink()
    run("doctor", code=1)
    run("doctor", "--repair")
    assert lost.is_file()

    run("compact", "--keep-days", "0")
    run("doctor")
    assert are_all_in(before, rows_as_then(kept, before))
    assert json.loads(run("query", verdicts, "--json").stdout) == reruns
    run("ingest", "--dataset", str(tmp_path / "later"))
    run("export", "--output", str(tmp_path / "after.jsonl"))
    exported, then = (run_digests(tmp_path / f"{name}.jsonl") for name in ("after", "before"))
    assert exported == then | {newest["run_digest"]} != then


def run_digests(export: Path) -> frozenset[str]:
    lines = [json.loads(line) for line in export.read_text().splitlines()]
    return frozenset(
        line["row"]["runDigest"] for line in lines if line["table"] == "benchmark_runs"
    )


@pytest.fixture
def later_version(tmp_path: Path) -> Path:
    """This program with a nullable column more: its contract, its value, its statement."""
    folder = tmp_path / "program"
    for name in ("assets", "pipelines", "sql"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    contract = '    ("not_measured", pa.bool_()),\n'
    insert(
        folder / "assets/manifests/records.py",
        contract,
        f'    Column("log_lines", pa.int64(), since={LATER}),\n',
    )
    insert(
        folder / "assets/manifests/trace_rows.py",
        '        "log_digest": [run.log.digest for run in runs],\n',
        '        "log_lines": [run.log.content.count(b"\\n") for run in runs],\n',
    )
    (folder / "sql/tables/run_log_lines.sql").write_text(
        "-- run_log_lines: one row per run, with how long its log is\n"
        "-- key: run_digest\n"
        "-- column run_digest: the run\n"
        "-- column log_lines: lines of its log; null for runs of before this was counted\n"
        "select\n    run_digest,\n    log_lines\nfrom published_runs\n"
    )
    return folder


def insert(file: Path, after: str, line: str) -> None:
    text = file.read_text()
    assert text.count(after) == 1
    file.write_text(text.replace(after, after + line))


@pytest.mark.integration
def test_a_version_with_one_more_column_uses_it(
    kept: Warehouse, later_version: Path, tmp_path: Path
) -> None:
    before = written_rows(kept.root)
    environment = {
        **os.environ,
        "PYTHONPATH": str(later_version),
        "KERNELINDEX_WAREHOUSE": str(kept.root),
        "DAGSTER_HOME": str(tmp_path / "dagster"),
    }

    def run(*arguments: str, code: int = 0) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", *arguments, "--json"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1] if arguments[0] == "ingest" else done.stdout)

    def by_lines() -> list[dict[str, object]]:
        return run("query", "select log_lines, count(*) as n from run_log_lines group by all")

    # The database is one of before: said, and built anew. No file is another version's fault.
    found = run("doctor", code=1)
    assert {finding["fault"] for finding in found["findings"]} == {"OLD_DATABASE"}
    run("doctor", "--repair")
    assert by_lines() == [{"log_lines": None, "n": 147}]

    log = {"evaluation__log": "one\ntwo\n"}
    folder = later_dataset(tmp_path / "later")
    dataset(folder, {"dataset.json": {"id": "kernelindex/later", "url": None}},
            traces=[trace(**log)])  # fmt: skip
    assert run("ingest", "--dataset", str(folder))["published"]["trace"] == 1
    both = [{"log_lines": 2, "n": 1}, {"log_lines": None, "n": 147}]
    assert sorted(by_lines(), key=str) == sorted(both, key=str)

    Path(kept.own_files("measurements")[-1]).unlink()
    assert run("doctor", "--repair")["not_repaired"] == []
    run("compact", "--keep-days", "0")
    assert run("doctor")["findings"] == []
    assert sorted(by_lines(), key=str) == sorted(both, key=str)
    [path] = kept.root.glob("generations/00000002/runs-*.parquet")
    assert pq.read_schema(path).metadata[b"kernelindex.contract"] == str(LATER).encode()
    exported = run("export", "--output", str(tmp_path / "catalog.jsonl"))
    assert exported["rows"]["benchmark_runs"] == 147
    assert are_all_in(before, written_rows(kept.root))

    # And the version of before names the one that can read it.
    environment["PYTHONPATH"] = str(ROOT)
    answer = run("doctor", code=1)
    assert {finding["fault"] for finding in answer["findings"]} == {"OTHER_VERSION"}
    assert f"version {LATER} of table runs" in answer["findings"][0]["message"]
