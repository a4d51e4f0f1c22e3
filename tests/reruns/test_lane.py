"""From a request through a real worker to the tables; and the shipped session of the sample."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from assets.leaderboards.build import build_database
from assets.reruns.errors import ResultRefusedError
from assets.reruns.lane import jobs, publish_job, reconcile
from assets.reruns.results import import_result
from assets.reruns.sample_results import ARCHIVES, import_sample_results, unpack
from assets.tables.warehouse import Warehouse
from assets.traces.untrusted_text import markdown
from pipelines.definitions import build_definitions
from pipelines.jobs import CONTROLLED_RERUN
from pipelines.settings import Settings
from tests.reruns.index import a_run, copy_of, rows, use_local
from tests.warehouses import ingest_into


@pytest.fixture(scope="module")
def measured(
    sample_index: Warehouse, torch_python: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, dg.ExecuteInProcessResult]:
    """One run of the sample measured on the CPU by the job itself."""
    folder = tmp_path_factory.mktemp("lane")
    own = copy_of(sample_index, folder / "warehouse")
    digest = a_run(own, "rmsnorm_h128_torch_rms_norm")
    definitions = build_definitions(Settings(own.root, folder / "home", "sample"))
    config = {
        "reason": "a test",
        "selection": {"runs": {"runs": [digest]}},
        "gpu": "cpu",
        "samples": 20,
        "deadline_s": 120.0,
        "runner": "tests",
    }
    use_local(own, torch_python)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
        result = definitions.resolve_job_def(CONTROLLED_RERUN).execute_in_process(
            run_config={"ops": {"rerun_requests": {"config": config}}},
            instance=dg.DagsterInstance.ephemeral(),
        )
    return own, result


def test_the_job_shows_what_a_trial_gave_and_publishes_nothing_of_it(
    measured: tuple[Warehouse, dg.ExecuteInProcessResult], sample_index: Warehouse
) -> None:
    own, result = measured
    assert result.success
    shown = {
        event.asset_key.to_user_string(): event.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }
    verdicts = shown["reruns/reproductions"]
    assert "NOT_ON_A_GPU" in str(verdicts["publication"].value)
    solution = markdown("rmsnorm_h128_torch_rms_norm")
    assert f"| {solution} | passed | " in str(verdicts["verdicts"].value)
    assert "other_hardware | a trial (" in str(verdicts["verdicts"].value)
    assert "data:image/svg+xml" in str(shown["reruns/rerun_samples"]["latency"].value)
    assert own.publications() == sample_index.publications()
    assert rows(own, "select count(*) from runs where not source_native") == [(0,)]


def test_a_trial_is_reconciled_as_one(
    measured: tuple[Warehouse, dg.ExecuteInProcessResult],
) -> None:
    own, _ = measured
    [line] = jobs(own)
    assert (line.imported, line.trial) == (True, True)
    imported = publish_job(own, line.job_id)
    assert (imported.publication, [run.status for run in imported.runs]) == (None, ["passed"])
    (own.root / "reruns" / "jobs" / line.job_id / "imported.json").unlink()
    _, published = reconcile(own)
    assert published == {line.job_id: "a trial of 1 run, published nowhere"}


def test_a_result_with_changed_samples_is_refused(
    measured: tuple[Warehouse, dg.ExecuteInProcessResult], tmp_path: Path
) -> None:
    own, _ = measured
    [line] = jobs(own)
    job = tmp_path / "job"
    shutil.copytree(own.root / "reruns" / "jobs" / line.job_id, job)
    samples = job / "result" / "samples.jsonl"
    samples.write_text(samples.read_text().replace('"device_ns": ', '"device_ns": 1'))
    with pytest.raises(ResultRefusedError, match=r"samples\.jsonl"):
        import_result(own, job / "bundle", job / "result")


def test_the_shipped_session_is_verified_and_imported_once(
    sample_index: Warehouse, tmp_path: Path
) -> None:
    own = copy_of(sample_index, tmp_path / "warehouse")
    [first] = import_sample_results(own)
    assert import_sample_results(own) == []
    assert first.publication is not None
    verified = [run for run in first.runs if run.evidence_level == "verified"]
    assert len(verified) == sum(run.status == "passed" for run in first.runs) > 30
    build_database(own)
    assert rows(own, "select count(*) > 0 from verified_records") == [(True,)]


def test_the_shipped_session_waits_until_all_its_runs_are_published(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    ingest_into(root, "baseline", build=False)
    assert import_sample_results(Warehouse(root)) == []
    ingest_into(root, build=False)
    [imported] = import_sample_results(Warehouse(root))
    assert imported.publication is not None


def test_what_imports_the_shipped_session_can_start_no_worker() -> None:
    # Whatever could start one is not even loaded.
    program = (
        "import sys, assets.reruns.sample_results; "
        "print(*(name for name in sys.modules if 'launchers' in name or name.endswith('.lane')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(loaded) <= {"assets.reruns.launchers", "assets.reruns.launchers.settings"}


def test_a_result_of_runs_that_are_not_published_is_refused(tmp_path: Path) -> None:
    empty = Warehouse(tmp_path / "empty")
    empty.prepare()
    build_database(empty)
    unpack(ARCHIVES[0], tmp_path / "shipped")
    with pytest.raises(ResultRefusedError, match="not published here"):
        import_result(empty, tmp_path / "shipped" / "bundle", tmp_path / "shipped" / "result")
    assert json.loads((tmp_path / "shipped" / "result" / "result.json").read_text())["items"]
