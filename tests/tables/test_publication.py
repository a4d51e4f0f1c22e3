"""Publications: only new rows, all at once or not at all."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.tables.contracts import STAGED
from assets.tables.publication import PublicationRequest, publish
from assets.tables.warehouse import Warehouse

ROOT = Path(__file__).resolve().parent.parent.parent
REQUEST = PublicationRequest(kind="ingest", dataset="a/b", revision="0" * 40)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    opened = Warehouse(tmp_path / "warehouse")
    opened.prepare()
    return opened


def stage(folder: Path, part: str, *digests: str, table: str = "projects") -> Path:
    """Staged rows of a table with these digests."""
    rows = [{"project_digest": digest, "path": part, "line": 1} for digest in digests]
    (folder / table).mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(rows, schema=STAGED[table]), folder / table / f"{part}.parquet"
    )
    return folder


def published(warehouse: Warehouse, table: str = "projects") -> list[str]:
    return [
        digest
        for path in warehouse.files(table)
        for digest in pq.read_table(path)["project_digest"].to_pylist()
    ]


def test_only_new_digests_are_added(warehouse: Warehouse, tmp_path: Path) -> None:
    first = publish(warehouse, stage(tmp_path / "1", "a", "x", "y"), REQUEST)
    second = publish(warehouse, stage(tmp_path / "2", "a", "y", "z"), REQUEST)
    assert first is not None
    assert second is not None
    assert second.tables["projects"].rows == 1
    assert sorted(published(warehouse)) == ["x", "y", "z"]


def test_a_digest_that_is_staged_twice_is_published_once(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    staging = stage(stage(tmp_path / "1", "a", "x", "x"), "b", "x", "y")
    assert publish(warehouse, staging, REQUEST) is not None
    assert sorted(published(warehouse)) == ["x", "y"]


@pytest.mark.parametrize("table", STAGED)
def test_an_empty_key_is_known_again(warehouse: Warehouse, tmp_path: Path, table: str) -> None:
    """Else each publication would bring the row once more, and no table could have its key."""
    rows = pa.Table.from_pylist([{}], schema=STAGED[table])
    for name in ("1", "2"):
        (tmp_path / name / table).mkdir(parents=True)
        pq.write_table(rows, tmp_path / name / table / "part.parquet")
    assert publish(warehouse, tmp_path / "1", REQUEST) is not None
    assert publish(warehouse, tmp_path / "2", REQUEST) is None


def test_nothing_new_is_no_publication(warehouse: Warehouse, tmp_path: Path) -> None:
    staging = stage(tmp_path / "1", "a", "x")
    publish(warehouse, staging, REQUEST)
    before = warehouse.publications()
    assert publish(warehouse, staging, REQUEST) is None
    assert warehouse.publications() == before


def test_published_files_never_change(warehouse: Warehouse, tmp_path: Path) -> None:
    publish(warehouse, stage(tmp_path / "1", "a", "x"), REQUEST)
    files = {path: Path(path).read_bytes() for path in warehouse.files("projects")}
    publish(warehouse, stage(tmp_path / "2", "a", "y"), REQUEST)
    assert {path: Path(path).read_bytes() for path in files} == files


def test_a_part_that_is_all_new_is_taken_as_it_is_and_no_other_is(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    staging = stage(stage(tmp_path / "1", "a", "x", "y"), "b", "y", "z")
    publish(warehouse, staging, REQUEST)
    published_files = {Path(path).stat().st_ino for path in warehouse.files("projects")}
    staged_files = [staging / "projects" / f"{part}.parquet" for part in "ab"]
    assert [path.stat().st_ino in published_files for path in staged_files] == [True, False]


def test_a_staged_file_of_another_shape_is_refused_whole(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    staging = stage(tmp_path / "1", "a", "x")
    (staging / "protocols").mkdir()
    wrong = pa.table({"protocol_digest": ["p"], "path": [""], "line": pa.array([1], pa.int32())})
    pq.write_table(wrong, staging / "protocols" / "a.parquet")
    with pytest.raises(Exception, match="protocols"):
        publish(warehouse, staging, REQUEST)
    assert published(warehouse) == []
    assert len(warehouse.publications()) == 1


@pytest.mark.parametrize("delay_ms", [0, 20, 50, 90, 140, 200])
def test_a_killed_publication_leaves_all_or_nothing(
    warehouse: Warehouse, tmp_path: Path, delay_ms: int
) -> None:
    staging = tmp_path / "1"
    for part in range(30):
        stage(staging, f"{part:02}", *(f"{part}-{row}" for row in range(200)))
    program = textwrap.dedent(
        f"""
        from pathlib import Path
        from assets.tables.publication import PublicationRequest, publish
        from assets.tables.warehouse import Warehouse
        warehouse = Warehouse(Path({str(warehouse.root)!r}))
        print("ready", flush=True)
        publish(warehouse, Path({str(staging)!r}), PublicationRequest(kind="ingest"))
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        process.wait(delay_ms / 1000)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert len(published(warehouse)) in (0, 6000)
    publish(warehouse, staging, REQUEST)
    assert sorted(published(warehouse)) == sorted(
        f"{part}-{row}" for part in range(30) for row in range(200)
    )
    assert not list((warehouse.root / "staging").glob("publication-*"))
