"""Small inputs after public reports of what datasets do: they change, move and are joined."""

import itertools
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assets.answers.lookup import Kind, find_all
from assets.leaderboards.build import build_database
from assets.leaderboards.reproduction import examine_database
from assets.tables.reader import open_database
from assets.traces.pull import pull
from assets.traces.snapshot import DatasetSnapshot
from pipelines.resources import OpenWarehouse
from tests.histories import derived, ingest_snapshot
from tests.pipelines.test_revisions import committed, git


@pytest.fixture(scope="module")
def cases(corpus: Path) -> Path:
    if not (corpus / "field-cases").is_dir():
        pytest.skip(f"no corpus in {corpus}")
    return corpus / "field-cases"


def revisions_of(case: Path, warehouse: OpenWarehouse) -> list[DatasetSnapshot]:
    """The revisions of a case as they were committed, a month apart."""
    return [
        pull(str(folder), revision=None, authors=None, store=warehouse.store).model_copy(
            update={"revision_at": datetime(2026, number, 1, tzinfo=UTC)}
        )
        for number, folder in enumerate(sorted(case.glob("r*")), start=1)
    ]


def read(root: Path, case: Path, order: Sequence[int]) -> OpenWarehouse:
    warehouse = OpenWarehouse(root)
    warehouse.prepare()
    snapshots = revisions_of(case, warehouse)
    for number in order:
        report = ingest_snapshot(warehouse, snapshots[number])
        assert all(count >= 0 for count in report.known.values())
        assert report.published["trace"] + report.known["trace"] == report.read["trace"]
    return warehouse


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0)])
@pytest.mark.parametrize(
    ("case", "runs"), [("fi-trace-in-place-real", 12), ("fib-337-outdtype", 2)]
)
def test_a_definition_that_changes_in_place_takes_no_run_away(
    cases: Path, tmp_path: Path, case: str, runs: int, order: Sequence[int]
) -> None:
    warehouse = read(tmp_path, cases / case, order)
    with derived(warehouse, "runs", "ranked_runs", "quarantine") as connection:
        shown = connection.sql("from runs select operation_digest, run_digest").fetchall()
        assert len(shown) == runs
        assert len({operation for operation, _ in shown}) == 2
        assert connection.table("quarantine").fetchall() == []
        ranked = connection.sql("select count(*) from ranked_runs").fetchall()
        assert ranked == [(runs,)]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3)), (2, 0)])
def test_a_layout_with_other_folders_and_another_author_is_the_same_dataset(
    cases: Path, tmp_path: Path, order: Sequence[int]
) -> None:
    warehouse = read(tmp_path, cases / "fib-379-layout-renamed", order)
    with derived(warehouse, "implementations", "runs") as connection:
        found = connection.sql(
            "from runs inner join implementations using (implementation_digest) "
            "select runs.solution_name, runs.author_directory, author, role order by all"
        ).fetchall()
    assert found == [
        ("flashinfer_wrapper", "baseline", "baseline", "baseline"),
        ("sol_a", "ann", "ann", "llm-generated"),
    ]


def test_two_roots_are_never_ranked_together(cases: Path, tmp_path: Path) -> None:
    warehouse = OpenWarehouse(tmp_path)
    warehouse.prepare()
    place = str(cases / "two-roots-one-name")
    ingest_snapshot(warehouse, pull(place, revision=None, authors=None, store=warehouse.store))
    with derived(warehouse, "runs", "ranked_runs", "operations") as connection:
        found = connection.sql(
            """
            select runs.solution_name, operations.constant_axes_json, ranked_runs.group_size
            from ranked_runs
            inner join runs using (run_digest)
            inner join operations using (operation_digest)
            order by all
            """
        ).fetchall()
    assert found == [("sol_1", '{"k":32,"n":64}', 1), ("sol_2", '{"k":2048,"n":4096}', 1)]


def test_four_forks_are_four_datasets_that_keep_what_they_lack(cases: Path, tmp_path: Path) -> None:
    warehouse = OpenWarehouse(tmp_path / "warehouse")
    warehouse.prepare()
    for number, owner in enumerate(("ann", "bob", "cat", "flashinfer-ai")):
        clone = tmp_path / owner / "flashinfer-trace"
        shutil.copytree(cases / "fib-337-outdtype" / "r1", clone)
        (clone / "dataset.json").unlink()
        broken = clone / "traces/ann/gemm/broken.jsonl"
        broken.write_text("{ no JSON\n" * (number + 1))
        git(clone, "init", "-q")
        git(clone, "remote", "add", "origin", f"https://github.com/{owner}/flashinfer-trace.git")
        committed(clone, tmp_path / owner / "clone", f"2026-01-0{number + 1}T00:00:00Z")
        snapshot = pull(str(clone), revision=None, authors=None, store=warehouse.store)
        ingest_snapshot(warehouse, snapshot)
    with derived(warehouse, "runs", "solutions", "quarantine") as connection:
        kept = connection.sql(
            "from quarantine select dataset, count(*) group by all order by all"
        ).fetchall()
        assert kept == [
            ("github.com/ann/flashinfer-trace", 1),
            ("github.com/bob/flashinfer-trace", 2),
            ("github.com/cat/flashinfer-trace", 3),
            ("github.com/flashinfer-ai/flashinfer-trace", 4),
        ]
        assert len(connection.table("runs").fetchall()) == 4
        licences = connection.sql("from solutions select distinct license_concluded").fetchall()
        assert licences == [(None,)]


def test_every_digest_that_was_ever_published_is_found_and_counted(
    cases: Path, tmp_path: Path
) -> None:
    warehouse = read(tmp_path, cases / "fi-trace-in-place-real", (1, 0))
    build_database(warehouse)
    with derived(warehouse, "run_aliases") as connection:
        digests = connection.sql("select distinct run_digest from published_runs").fetchall()
    with open_database(warehouse.root) as connection:
        for (digest,) in digests:
            assert len(find_all(connection, digest, tuple(Kind))) == 1
    found = examine_database(warehouse)
    assert found.findings == []
    assert found.looked_at["published runs"] == 18
    assert found.looked_at["shown runs"] == 12
    assert found.looked_at["runs that others stand for"] == 6
