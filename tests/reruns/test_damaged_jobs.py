"""A hundred damaged variants of a job's record and of the launchers' settings: one line each."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assets.reruns.launchers.job import JobRecord, JobState, JobStatus, LocalHandle, Transition
from assets.reruns.launchers.settings import LaunchersSettings, LocalSettings
from assets.tables.warehouse import Warehouse
from pipelines.cli import app
from tests.reruns.damage import variants
from tests.reruns.index import a_run, copy_of
from tests.reruns.test_damaged_bundles import at_most

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def record(root: Path) -> JobRecord:
    return JobRecord(
        job_id="rerun-0", bundle_id="sha256:0", nonce="n", gpu="cpu", deadline_s=60.0,
        deadline_at=NOW, launcher=LocalSettings(worker_file=root / "w.pyz", lock_dir=str(root)),
        handle=LocalHandle(job_id="rerun-0"), prepared_at=NOW, submitted_at=NOW,
        status=JobStatus(state=JobState.CANCELLED), history=(Transition(at=NOW, event="x"),),
    )  # fmt: skip


def ask(*arguments: str, name: str) -> None:
    with at_most(20):
        result = CliRunner().invoke(app, ["rerun", *arguments])
    assert isinstance(result.exception, SystemExit | None), (name, result.exception)
    assert result.exit_code in (0, 1, 2), (name, result.output)
    if result.exit_code:
        assert len(result.stderr.splitlines()) == 1, (name, result.stderr)


@pytest.fixture
def own(sample_index: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    made = copy_of(sample_index, tmp_path / "warehouse")
    monkeypatch.setenv("KERNELINDEX_WAREHOUSE", str(made.root))
    monkeypatch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
    return made


@pytest.mark.integration
def test_a_damaged_record_of_a_job_is_said_in_a_line(own: Warehouse, tmp_path: Path) -> None:
    job = own.root / "reruns" / "jobs" / "rerun-0"
    job.mkdir(parents=True)
    whole = tmp_path / "job.json"
    whole.write_text(record(tmp_path).model_dump_json())
    good = own.root / "reruns" / "jobs" / "rerun-1"
    good.mkdir()
    shutil.copy(whole, good / "job.json")
    for name, damage in variants(whole):
        shutil.rmtree(job)
        job.mkdir()
        shutil.copy(whole, job / "job.json")
        damage(job / "job.json")
        ask("status", name=name)
        ask("reconcile", name=name)


@pytest.mark.integration
def test_damaged_settings_of_launchers_are_said_in_a_line(own: Warehouse, tmp_path: Path) -> None:
    run = a_run(own, "rmsnorm_h128_torch_rms_norm")
    settings = LaunchersSettings(
        local=LocalSettings(worker_file=tmp_path / "no such worker", python="no-such-python")
    )
    whole = tmp_path / "launchers.json"
    whole.write_text(settings.model_dump_json())
    target = own.root / "reruns" / "launchers.json"
    target.parent.mkdir(exist_ok=True)
    for name, damage in variants(whole):
        if target.is_dir():
            target.rmdir()
        target.unlink(missing_ok=True)
        shutil.copy(whole, target)
        damage(target)
        if not os.path.lexists(target):
            continue  # without settings there is the launcher of this machine
        ask("run", run, "--reason", "a test", name=name)
    assert not (own.root / "reruns" / "jobs").exists()
