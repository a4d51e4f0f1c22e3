"""The launcher for this machine, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assets.reruns.launchers.drive import WorkerEvent, follow, run_job
from assets.reruns.launchers.job import FailureReason, JobState, RerunJob
from assets.reruns.launchers.job_directory import (
    BundleError,
    DuplicateJobError,
    JobInUseError,
)
from assets.reruns.launchers.launcher import NoResultError
from assets.reruns.launchers.local import LocalLauncher
from assets.reruns.launchers.settings import LauncherNotConfiguredError, LocalSettings
from assets.reruns.launchers.supervisor import processes
from tests.reruns.launchers.builders import (
    QUICK_STOP,
    Ledger,
    bundle,
    directory_of,
    ignore,
    job,
    never,
    processes_of,
    result_of,
    wait_until,
)


@pytest.fixture
def launcher(local_settings: LocalSettings, tmp_path: Path) -> LocalLauncher:
    return LocalLauncher(local_settings, tmp_path / "jobs")


def test_a_job_runs_and_its_result_is_collected(launcher: LocalLauncher, tmp_path: Path) -> None:
    events: list[WorkerEvent] = []
    one = job(tmp_path, items=2)

    outcome = run_job(launcher, one, events.append, never)

    assert outcome.status.state is JobState.FINISHED
    assert outcome.result is not None
    assert result_of(outcome.result)["state"] == "complete"
    names = [event.name for event in events]
    assert names == ["started", *["item_started", "item_finished"] * 2, "finished"]
    history = [line.event for line in directory_of(launcher, one).read().history]
    assert history == ["prepared", "submitted", "running", "finished", "collected"]


def test_the_worker_sees_named_variables_only(
    launcher: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "a secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    settings = launcher.settings.model_copy(update={"environment": {"OMP_NUM_THREADS": "1"}})

    outcome = run_job(LocalLauncher(settings, tmp_path / "jobs"), job(tmp_path), ignore, never)

    assert outcome.result is not None
    seen = result_of(outcome.result)["environment"]
    assert {"PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"} <= set(seen)
    assert "HF_TOKEN" not in seen


def test_submitting_a_job_again_attaches_to_it(launcher: LocalLauncher, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    one = job(tmp_path, sleep_s=0.3, ledger=str(ledger.path))

    first = launcher.submit(one)
    second = launcher.submit(one)
    outcome = follow(launcher, second, ignore, never)
    third = launcher.submit(one)

    assert first == second == third
    assert outcome.status.state is JobState.FINISHED
    assert ledger.count("started") == 1


def test_a_job_id_with_another_bundle_is_refused(launcher: LocalLauncher, tmp_path: Path) -> None:
    launcher.submit(job(tmp_path, "same"))
    with pytest.raises(DuplicateJobError, match="same exists already"):
        launcher.submit(job(tmp_path, "same"))


def test_a_job_driven_by_another_process_is_refused(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path)
    launcher.submit(one)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,2);print(1,flush=True);input()",
            str(directory_of(launcher, one).path / ".job.lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        with pytest.raises(JobInUseError, match="another process"):
            launcher.submit(one)
    finally:
        holder.communicate(b"\n")


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (2, FailureReason.REFUSED_BUNDLE),
        (3, FailureReason.INFRASTRUCTURE),
        (4, FailureReason.GPU_BUSY),
        (1, FailureReason.WORKER_CRASHED),
    ],
)
def test_a_workers_exit_code_becomes_a_reason(
    launcher: LocalLauncher, tmp_path: Path, exit_code: int, reason: FailureReason
) -> None:
    outcome = run_job(launcher, job(tmp_path, exit_code=exit_code), ignore, never)
    assert (outcome.status.state, outcome.status.reason) == (JobState.FAILED, reason)
    assert outcome.result is None


def test_two_jobs_on_one_gpu_are_told_apart_by_the_workers_lock(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    settings = launcher.settings.model_copy(update={"lock_dir": str(tmp_path / "locks")})
    launcher = LocalLauncher(settings, tmp_path / "jobs")
    slow = job(tmp_path, sleep_s=1.0).model_copy(update={"gpu": "0"})
    handle = launcher.submit(slow)
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))

    second = job(tmp_path).model_copy(update={"gpu": "0"})
    outcome = run_job(launcher, second, ignore, never)

    assert outcome.status.reason is FailureReason.GPU_BUSY
    assert follow(launcher, handle, ignore, never).status.state is JobState.FINISHED


def test_a_result_of_another_nonce_is_not_taken(launcher: LocalLauncher, tmp_path: Path) -> None:
    one = job(tmp_path, nonce="somebody else's")
    outcome = run_job(launcher, one, ignore, never)
    assert outcome.status.reason is FailureReason.FOREIGN_RESULT
    with pytest.raises(NoResultError):
        launcher.collect(launcher.submit(one))


@pytest.mark.parametrize("deaf", [False, True])
def test_a_cancel_frees_everything_within_seconds(
    launcher: LocalLauncher, tmp_path: Path, deaf: bool
) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=deaf, leave_child_s=60)
    handle = launcher.submit(one)
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))
    wait_until(lambda: len(processes_of(directory_of(launcher, one))) == 2)

    asked_at = time.monotonic()
    outcome = follow(launcher, handle, ignore, lambda: True)

    assert outcome.status.state is JobState.CANCELLED
    assert processes_of(directory_of(launcher, one)) == []
    assert time.monotonic() - asked_at < QUICK_STOP.total_s + 1.0


def test_a_deaf_worker_past_its_deadline_is_killed_without_any_launcher(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, deadline_s=0.4, sleep_s=60, ignore_signals=True, ignore_deadline=True)
    started_at = time.monotonic()
    handle = launcher.submit(one)

    wait_until(lambda: launcher.poll(handle).state.is_final)

    assert time.monotonic() - started_at < 0.4 + QUICK_STOP.total_s + 1.0
    assert launcher.poll(handle).reason is FailureReason.DEADLINE
    assert processes_of(directory_of(launcher, one)) == []


def test_a_worker_that_keeps_its_deadline_hands_in_what_it_has(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    patient = launcher.settings.stop.model_copy(update={"deadline_slack_s": 10.0})
    settings = launcher.settings.model_copy(update={"stop": patient})
    launcher = LocalLauncher(settings, tmp_path / "jobs")
    outcome = run_job(launcher, job(tmp_path, deadline_s=0.3, sleep_s=60), ignore, never)
    assert outcome.result is not None
    assert result_of(outcome.result)["state"] == "deadline"


def test_children_left_by_a_finished_worker_are_swept(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, leave_child_s=60)
    outcome = run_job(launcher, one, ignore, never)
    assert outcome.status.state is JobState.FINISHED
    assert processes_of(directory_of(launcher, one)) == []


def test_a_cancel_after_the_result_keeps_the_result(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, after_result_s=60)
    handle = launcher.submit(one)
    wait_until((directory_of(launcher, one).result / "result.json").exists)

    outcome = follow(launcher, handle, ignore, lambda: True)

    assert outcome.status.state is JobState.FINISHED
    assert outcome.result is not None


def test_a_killed_supervisor_takes_its_worker_along(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=True)
    handle = launcher.submit(one)
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))
    path = directory_of(launcher, one).path

    os.kill(json.loads((path / "process.json").read_text())["pid"], signal.SIGKILL)

    wait_until(lambda: processes.marked(path) == [])
    assert launcher.poll(handle).state is JobState.LOST


def test_an_interrupt_of_the_launcher_stops_the_job(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, sleep_s=60)

    def interrupt(event: WorkerEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(launcher, one, interrupt, never)

    assert directory_of(launcher, one).read().status.state is JobState.CANCELLED
    assert processes_of(directory_of(launcher, one)) == []


def test_a_bundle_without_description_or_with_links_is_refused(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    with pytest.raises(BundleError, match=r"no bundle\.json"):
        launcher.submit(RerunJob(job_id="empty", bundle_dir=tmp_path, deadline_s=1))
    linked = bundle(tmp_path)
    (linked / "solutions" / "passwords").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match="no links"):
        launcher.submit(RerunJob(job_id="linked", bundle_dir=linked, deadline_s=1))
    assert not launcher.jobs_root.exists() or not list(launcher.jobs_root.iterdir())


def test_check_names_the_setting_that_is_wrong(launcher: LocalLauncher, tmp_path: Path) -> None:
    launcher.check()
    for wrong, message in (
        ({"python": "no-such-python"}, "local.python"),
        ({"python": "/bin/false"}, "no Python"),
        ({"worker_file": tmp_path / "missing.pyz"}, "worker_file"),
    ):
        settings = launcher.settings.model_copy(update=wrong)
        with pytest.raises(LauncherNotConfiguredError, match=message):
            LocalLauncher(settings, tmp_path).check()
