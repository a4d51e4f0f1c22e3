"""A trial is shown to who made it, and published, ranked and offered nowhere."""

from pathlib import Path

import pytest

from assets.answers.errors import NoAnswerError
from assets.answers.lookup import gpus
from assets.answers.resolution import resolve
from assets.leaderboards.build import build_database
from assets.reruns.results import import_result
from assets.reruns.verdicts import Unverified
from assets.tables.reader import open_database
from assets.tables.row_checks import examine_rows
from assets.tables.warehouse import Warehouse
from tests.reruns.index import copy_of, rows
from tests.reruns.sessions import (
    PART,
    StoredSession,
    on_a_cpu,
    part_of_shipped,
    with_fewer_calls,
)

OPERATION = "fused_add_rmsnorm_h7168"


def made_trial(folder: Path, *, cpu: bool = False, fewer: bool = False) -> StoredSession:
    session = part_of_shipped(folder, PART)
    if cpu:
        on_a_cpu(session)
    if fewer:
        with_fewer_calls(session)
    session.write()
    return session


def bring(warehouse: Warehouse, folder: Path):
    return import_result(warehouse, folder / "bundle", folder / "result", "somebody")


@pytest.mark.parametrize(
    ("cpu", "fewer", "because"),
    [
        (True, False, (Unverified.NOT_ON_A_GPU,)),
        (False, True, (Unverified.PROTOCOL_NOT_APPROVED,)),
        (True, True, (Unverified.NOT_ON_A_GPU, Unverified.PROTOCOL_NOT_APPROVED)),
    ],
)
def test_a_trial_has_an_outcome_and_no_publication(
    sample_index: Warehouse, tmp_path: Path, cpu: bool, fewer: bool, because: tuple[Unverified, ...]
) -> None:
    before = sample_index.publications()
    imported = bring(sample_index, made_trial(tmp_path, cpu=cpu, fewer=fewer).folder)
    assert imported.trial == because
    assert [run.status for run in imported.runs] == [
        "passed", "incorrect_numerical", "passed", "compile_error",
    ]  # fmt: skip
    assert {run.evidence_level for run in imported.runs} == {None}
    assert imported.publication is None
    assert sample_index.publications() == before


@pytest.fixture(scope="module")
def older(sample_index: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse into which an earlier version published both kinds of trials."""
    folder = tmp_path_factory.mktemp("older")
    own = copy_of(sample_index, folder / "warehouse")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assets.reruns.result_rows.trial_because", lambda *_: ())
        cpu = bring(own, made_trial(folder / "cpu", cpu=True).folder)
        second = made_trial(folder / "fewer", fewer=True)
        for sample in second.samples:  # other contents: a session of its own
            sample["seed"] += 1
        second.write()
        fewer = bring(own, second.folder)
    assert cpu.publication is not None
    assert fewer.publication is not None
    build_database(own)
    return own


def test_published_trials_are_excluded_with_a_reason(older: Warehouse) -> None:
    assert rows(older, "select count(*), any_value(explanation) from excluded_runs "
                       "where reason = 'TRIAL'") == [
        (8, "the run was made on a CPU, or with other parameters than those of its protocol")
    ]  # fmt: skip
    assert rows(older, "select because, count(*) from trials group by all order by all") == [
        (["NOT_ON_A_GPU"], 4),
        (["PROTOCOL_NOT_APPROVED"], 4),
    ]


def test_published_trials_are_in_no_other_table(older: Warehouse, sample_index: Warehouse) -> None:
    """What is derived is what it was before they were published."""
    for table in (
        "runs", "run_eligibility", "ranked_runs", "ranked_implementations", "strict_groups",
        "environments", "protocols", "measurements", "reproductions", "rerun_samples", "coverage",
        "controlled_rankings", "verified_records", "record_events", "records", "caveats",
        "author_results", "leaderboard_authors", "leaderboard_operations",
        "leaderboard_solutions", "fast_p_curves", "freshness", "run_dossiers",
    ):  # fmt: skip
        query = f"select count(*) from {table}"
        assert rows(older, query) == rows(sample_index, query), table
    for table in ("coverage", "environments", "leaderboard_authors", "leaderboard_operations"):
        assert rows(older, f"select distinct gpu_product from {table}") == [("NVIDIA H200",)], table
    assert not examine_rows(older).findings


def test_published_trials_are_offered_to_nobody(older: Warehouse) -> None:
    with open_database(older.root) as connection:
        assert gpus(connection, None) == ["NVIDIA H200"]
        with pytest.raises(NoAnswerError):
            gpus(connection, "CPU")
        found = resolve(connection, OPERATION, {})
    assert {result.gpu_product for result in (*found.exact, *found.near)} == {"NVIDIA H200"}


def test_a_trial_that_was_published_is_still_shown_as_one(older: Warehouse, tmp_path: Path) -> None:
    imported = bring(older, made_trial(tmp_path, cpu=True).folder)
    assert imported.trial == (Unverified.NOT_ON_A_GPU,)
    assert imported.publication is None
