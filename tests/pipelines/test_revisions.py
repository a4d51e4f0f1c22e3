"""A dataset over its revisions: identities stay, order does not matter, changes supersede."""

import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assets.leaderboards.build import build_database
from assets.manifests.normalize import normalize, normalize_again
from assets.manifests.staging import load_normalized, save_normalized
from assets.tables.publication import PublicationRequest, publish
from assets.tables.settled import settle
from assets.traces.pull import pull
from assets.traces.snapshot import save_snapshot
from pipelines.resources import OpenWarehouse
from tests.builders import dataset, solution, trace

# Tables that say what is known now; when and in which publication it came is left out.
TABLES = ("runs", "implementations", "operations", "workloads", "ranked_runs", "quarantine")
LEFT_OUT = {"publication_id", "published_at", "first_seen", "last_seen", "revision", "path", "line"}


def ingest(warehouse: OpenWarehouse, clone: Path) -> None:
    """The stages of the ingest job, without Dagster around them."""
    snapshot = pull(str(clone), revision=None, authors=None, store=warehouse.store)
    save_snapshot(snapshot, warehouse.snapshot_file(snapshot.snapshot_id))
    staging = warehouse.staging("test")
    known = warehouse.known(snapshot)
    outcome = normalize(snapshot, warehouse.store, staging / "rows", known, processes=1)
    if outcome.moved:
        later = warehouse.later_snapshots(snapshot)
        normalize_again(later, warehouse.store, staging / "rows", known, outcome.moved)
    request = PublicationRequest(
        kind="ingest",
        dataset=snapshot.dataset,
        revision=snapshot.revision,
        snapshot_id=snapshot.snapshot_id,
    )
    publish(warehouse, staging / "rows", request)
    save_normalized(outcome, staging)
    settle(warehouse, load_normalized(staging))
    shutil.rmtree(staging)


@pytest.fixture(scope="module")
def revisions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three commits of one dataset: more traces, then a changed solution."""
    root = tmp_path_factory.mktemp("revisions")
    work = root / "work"
    dataset(work)
    git(work, "init", "-q")
    clones = [committed(work, root / "1", "2026-01-01T00:00:00Z")]
    (traces,) = (work / "traces").rglob("*.jsonl")
    later = trace()
    later["evaluation"]["timestamp"] = "2026-01-15T00:00:00"
    traces.write_text(traces.read_text() + json.dumps(later) + "\n")
    clones.append(committed(work, root / "2", "2026-02-01T00:00:00Z"))
    (path,) = (work / "solutions").rglob("*.json")
    changed = solution()
    changed["sources"][0]["content"] += "# faster\n"
    path.write_text(json.dumps(changed))
    clones.append(committed(work, root / "3", "2026-03-01T00:00:00Z"))
    return clones


def git(folder: Path, *arguments: str, **environment: str) -> None:
    identity = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org"}
    identity |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org"}
    subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", **identity, **environment},
    )


def committed(work: Path, clone: Path, at: str) -> Path:
    git(work, "add", "-A")
    git(work, "commit", "-qm", "state", GIT_AUTHOR_DATE=at, GIT_COMMITTER_DATE=at)
    shutil.copytree(work, clone)
    return clone


def state(warehouse: OpenWarehouse) -> dict[str, list[tuple[object, ...]]]:
    build_database(warehouse)
    with duckdb.connect(str(warehouse.database), read_only=True) as connection:
        found = {}
        for table in TABLES:
            columns = [name for name in connection.table(table).columns if name not in LEFT_OUT]
            rows = connection.table(table).project(*map(duckdb.ColumnExpression, columns))
            found[table] = sorted(rows.fetchall(), key=repr)
        return found


def ingested(root: Path, clones: list[Path]) -> dict[str, list[tuple[object, ...]]]:
    shutil.rmtree(root, ignore_errors=True)
    warehouse = OpenWarehouse(root)
    warehouse.prepare()
    for clone in clones:
        ingest(warehouse, clone)
    return state(warehouse)


def test_a_later_revision_keeps_the_identity_and_duplicates_nothing(
    revisions: list[Path], tmp_path: Path
) -> None:
    first = ingested(tmp_path / "w", revisions[:1])
    both = ingested(tmp_path / "w", revisions[:2])
    assert len(first["runs"]) == 1
    assert len(both["runs"]) == 2
    assert both["implementations"] == first["implementations"]


def test_a_changed_source_supersedes(revisions: list[Path], tmp_path: Path) -> None:
    after = ingested(tmp_path / "w", revisions)
    assert len(after["implementations"]) == 2
    assert len(after["runs"]) == 4
    assert len(after["ranked_runs"]) == 2


_states: dict[frozenset[int], dict[str, list[tuple[object, ...]]]] = {}


@pytest.mark.integration
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_the_order_of_ingestion_does_not_matter(
    revisions: list[Path], tmp_path: Path, order: list[int]
) -> None:
    found = ingested(tmp_path / "w", [revisions[number] for number in order])
    expected = _states.setdefault(
        frozenset(order),
        ingested(tmp_path / "w", [revisions[number] for number in sorted(set(order))]),
    )
    assert found == expected
