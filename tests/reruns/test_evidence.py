"""The evidence level is decided once, at the import; whatever reads it reads that decision."""

import json
from pathlib import Path

import pytest

from assets.answers.export import export_catalog
from assets.leaderboards.build import build_database
from assets.leaderboards.site import addresses
from assets.leaderboards.site.build import build_site
from assets.manifests.trust import evidence_level
from assets.reruns.results import import_result
from assets.reruns.verdicts import Unverified
from assets.tables.corrections import Action, Correction, LocatedCorrection, publish_corrections
from assets.tables.warehouse import Warehouse
from tests.reruns.index import copy_of, rows
from tests.reruns.sessions import StoredSession, on_another_day, unpacked

ROOT = Path(__file__).resolve().parents[2]


def test_the_reasons_why_a_run_is_not_verified_are_these_and_are_documented() -> None:
    assert [str(reason) for reason in Unverified] == [
        "NOT_PASSED",
        "NOT_ON_A_GPU",
        "PROTOCOL_NOT_APPROVED",
        "CALIBRATION_NOT_CLEAN",
        "INCOMPLETE_SESSION",
        "CACHED_BUILD",
        "WORKER_SAYS_NO",
    ]
    page = (ROOT / "docs" / "reruns.md").read_text()
    for reason in Unverified:
        assert f"| `{reason}` | {reason.explanation} |" in page


def session(folder: Path, day: str) -> Path:
    """The shipped session, as if it had been measured on another day: other runs, same values."""
    stored = StoredSession.read(unpacked(folder))
    on_another_day(stored, day)
    return stored.write()


def bring(warehouse: Warehouse, folder: Path, runner: str) -> None:
    import_result(warehouse, folder / "bundle", folder / "result", runner)
    build_database(warehouse)


def retract(warehouse: Warehouse, digest: str) -> None:
    correction = Correction(
        action=Action.RETRACT,
        target=digest,
        target_kind="run",
        author="a test",
        reason="clocks were throttled",
        evidence_url="https://example.org/log",
    )
    publish_corrections(warehouse, [LocatedCorrection(correction=correction, line=1)], "a test")
    build_database(warehouse)


@pytest.fixture(scope="module")
def index(sample_index: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """One session, one of its fastest runs retracted, and a session of another runner."""
    folder = tmp_path_factory.mktemp("evidence")
    own = copy_of(sample_index, folder / "warehouse")
    bring(own, session(folder / "one", "2027-01-01"), "one")
    retract(own, fastest(own))
    bring(own, session(folder / "two", "2027-01-02"), "two")
    return own


def fastest(warehouse: Warehouse) -> str:
    [(digest,)] = rows(
        warehouse, "select run_digest from verified_records order by comparison_key limit 1"
    )
    return str(digest)


@pytest.fixture(scope="module")
def retracted(index: Warehouse) -> str:
    [(digest,)] = rows(index, "select target_digest from withdrawals where retracted")
    return str(digest)


def test_a_run_is_verified_exactly_where_nothing_is_in_the_way(index: Warehouse) -> None:
    found = rows(
        index,
        "select evidence_level in ('verified', 'replicated'), len(unverified_because) = 0, "
        "count(*) from runs inner join reproductions using (run_digest) group by all order by all",
    )
    assert [row[:2] for row in found] == [(False, False), (True, True)]
    assert rows(
        index, "select count(*) from runs where evidence_level in ('verified', 'replicated') "
        "and run_digest not in (select run_digest from reproductions)",
    ) == [(0,)]  # fmt: skip


def test_every_table_shows_the_level_that_was_stored(index: Warehouse) -> None:
    for table in ("verified_records", "controlled_rankings", "run_dossiers"):
        assert rows(
            index,
            f"select count(*) > 0, count(*) filter (where {table}.evidence_level "
            f"<> runs.evidence_level) from {table} inner join runs using (run_digest)",
        ) == [(True, 0)], table


def test_a_second_runner_replicates_what_stands(index: Warehouse, retracted: str) -> None:
    """The retracted run does not count, so that what it would have confirmed is only verified."""
    by_runner = dict(
        rows(
            index,
            "select runner, list(distinct evidence_level order by evidence_level) "
            "from runs inner join reproductions using (run_digest) "
            "where len(unverified_because) = 0 group by all",
        )
    )
    assert by_runner == {"one": ["verified"], "two": ["replicated", "verified"]}
    [(alone,)] = rows(
        index,
        "select reproduces_digest from runs inner join reproductions using (run_digest) "
        "where runner = 'two' and evidence_level = 'verified'",
    )
    assert rows(
        index, f"select reproduces_digest from reproductions where run_digest = '{retracted}'"
    ) == [(alone,)]


def test_a_retracted_run_keeps_its_level_and_counts_nowhere(
    index: Warehouse, retracted: str, tmp_path: Path
) -> None:
    assert rows(index, f"select evidence_level from runs where run_digest = '{retracted}'") == [
        ("verified",)
    ]
    for table in ("verified_records", "controlled_rankings"):
        assert rows(
            index, f"select count(*) from {table} where run_digest = '{retracted}'"
        ) == [(0,)], table  # fmt: skip


def test_the_site_shows_the_same_decision(sample_index: Warehouse, tmp_path: Path) -> None:
    own = copy_of(sample_index, tmp_path / "warehouse")
    bring(own, session(tmp_path / "one", "2027-01-01"), "one")
    [(newest,)] = rows(
        own,
        "select run_digest from runs where evidence_level = 'verified' "
        "order by observed_at desc, run_digest limit 1",
    )

    def page(digest: object) -> str:
        return (tmp_path / "site" / addresses.run(str(digest))).read_text()

    build_site(own, tmp_path / "site")
    home = (tmp_path / "site" / "index.html").read_text()
    assert addresses.run(str(newest)) in home
    [(reported, failed)] = rows(
        own,
        "select any_value(reproduces_digest) filter (where controlled_status = 'passed'), "
        "any_value(run_digest) filter (where controlled_status <> 'passed') from reproductions",
    )
    assert "measured again, see below" in page(reported)
    assert "a controlled rerun, not verified: NOT_PASSED" in page(failed)
    retract(own, str(newest))
    build_site(own, tmp_path / "site")
    home = (tmp_path / "site" / "index.html").read_text()
    assert addresses.run(str(newest)) not in home
    assert "level-verified" in home


def test_the_catalog_counts_runners_where_the_level_says_replicated(
    index: Warehouse, tmp_path: Path
) -> None:
    catalog = tmp_path / "catalog.jsonl"
    export_catalog(index, catalog)
    stored = dict(rows(index, "select run_digest, evidence_level from runs"))
    lines = [json.loads(line) for line in catalog.read_text().splitlines()]
    runs = [line["row"] for line in lines if line["table"] == "benchmark_runs"]
    assert {run["runDigest"]: evidence_level(
        source_available=run["sourceAvailable"],
        has_raw_evidence=run["hasRawEvidence"],
        identity_complete=True,
        reproduced=run["reproducedByKernelindex"],
        replications=run["independentReplicationCount"],
    ) for run in runs} == stored  # fmt: skip
