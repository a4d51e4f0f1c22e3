"""What `reconcile` finds and repairs, case by case; random kills are in `test_faults`."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assets.reruns.launchers import job_directory
from assets.reruns.launchers.job import JobState, LocalHandle
from assets.reruns.launchers.job_directory import PREPARING, JobDirectory
from assets.reruns.launchers.local import LocalLauncher
from assets.reruns.launchers.reconcile import FindingKind, ReconcileFinding, reconcile
from assets.reruns.launchers.settings import LocalSettings, SshSettings
from assets.reruns.launchers.ssh import SshLauncher
from assets.reruns.launchers.supervisor import processes
from tests.reruns.launchers.builders import WORKER, job, result_of, wait_until


@pytest.fixture
def launcher(local_settings: LocalSettings, tmp_path: Path) -> LocalLauncher:
    return LocalLauncher(local_settings, tmp_path / "jobs")


def kinds(findings: list[ReconcileFinding]) -> list[FindingKind]:
    return [finding.kind for finding in findings]


def test_nothing_to_do_where_there_are_no_jobs(tmp_path: Path) -> None:
    assert reconcile(tmp_path / "none") == []


def test_a_finished_job_is_collected_once(launcher: LocalLauncher, tmp_path: Path) -> None:
    one = job(tmp_path)
    handle = launcher.submit(one)
    wait_until(lambda: launcher.poll(handle).state is JobState.FINISHED)

    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.COLLECTED]
    assert reconcile(launcher.jobs_root) == []
    result_of(launcher.collect(handle))


def test_a_running_job_is_left_to_run_and_can_be_followed(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    handle = launcher.submit(job(tmp_path, sleep_s=0.5))
    wait_until(lambda: launcher.poll(handle).state is JobState.RUNNING)
    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.RUNNING]
    wait_until(lambda: launcher.poll(handle).state is JobState.FINISHED)
    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.COLLECTED]


def test_a_job_past_its_deadline_is_stopped(launcher: LocalLauncher, tmp_path: Path) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=True)
    handle = launcher.submit(one)
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))
    directory = JobDirectory(launcher.jobs_root / one.job_id)
    directory.update("aged", deadline_at=datetime.now(UTC) - timedelta(hours=1))

    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.STOPPED, FindingKind.ENDED]
    assert processes.marked(directory.path) == []
    assert directory.read().status.state is JobState.FAILED
    assert reconcile(launcher.jobs_root) == []


def test_a_job_that_was_never_started_will_not_start_any_more(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path)
    handle = LocalHandle(job_id=one.job_id)
    directory = job_directory.prepare(launcher.jobs_root, one, launcher.settings, handle)

    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.NEVER_STARTED]
    launcher.submit(one)  # attaches to the job as it is
    time.sleep(0.2)
    assert directory.read().status.state is JobState.LOST
    assert not (directory.path / "process.json").exists()


def test_a_job_whose_supervisor_was_killed_is_lost_and_swept(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, sleep_s=60, leave_child_s=60)
    handle = launcher.submit(one)
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))
    path = launcher.jobs_root / one.job_id
    os.kill(json.loads((path / "process.json").read_text())["pid"], signal.SIGKILL)
    wait_until(lambda: len(processes.marked(path)) == 1)  # the deaf child in its own session

    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.LOST]
    assert processes.marked(path) == []


def test_orphans_of_a_settled_job_are_killed(launcher: LocalLauncher, tmp_path: Path) -> None:
    one = job(tmp_path)
    handle = launcher.submit(one)
    wait_until(lambda: launcher.poll(handle).state is JobState.FINISHED)
    launcher.collect(handle)
    path = (launcher.jobs_root / one.job_id).resolve()
    environment = {**os.environ, processes.RUN_MARKER: str(path)}
    orphan = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=-1)
    try:
        wait_until(lambda: processes.marked(path) == [orphan.pid])
        assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.ORPHANS_KILLED]
        assert orphan.wait(5) == -signal.SIGKILL
    finally:
        orphan.kill()
        orphan.communicate()


def test_a_job_another_process_drives_is_left_alone(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path)
    launcher.submit(one)
    with (launcher.jobs_root / one.job_id / ".job.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.DRIVEN]


def test_half_made_directories_and_copies_are_removed(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path)
    launcher.submit(one)
    half = launcher.jobs_root / f"{PREPARING}other-123"
    half.mkdir()
    (half / "bundle").mkdir()
    copy = launcher.jobs_root / one.job_id / ".partial-result"
    copy.mkdir()

    found = kinds(reconcile(launcher.jobs_root))

    assert {FindingKind.HALF_PREPARED, FindingKind.HALF_COPIED} <= set(found)
    assert not half.exists()
    assert not copy.exists()


def test_a_late_result_turns_a_lost_job_into_a_finished_one(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path)
    handle = launcher.submit(one)
    wait_until(lambda: launcher.poll(handle).state is JobState.FINISHED)
    directory = JobDirectory(launcher.jobs_root / one.job_id)
    lost = directory.read().status.model_copy(update={"state": JobState.LOST})
    directory.update("lost", status=lost)

    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.COLLECTED]
    assert directory.read().status.state is JobState.FINISHED


def test_a_damaged_record_is_reported_and_the_other_jobs_go_on(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    damaged = launcher.jobs_root / "damaged"
    damaged.mkdir(parents=True)
    (damaged / "job.json").write_text('{"format_version": 7}')
    handle = launcher.submit(job(tmp_path, "sound"))
    wait_until(lambda: launcher.poll(handle).state is JobState.FINISHED)
    found = reconcile(launcher.jobs_root)
    assert kinds(found) == [FindingKind.DAMAGED, FindingKind.COLLECTED]


def test_lock_files_nobody_holds_are_named_and_stay(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    locks = tmp_path / "locks"
    settings = launcher.settings.model_copy(update={"lock_dir": str(locks)})
    launcher = LocalLauncher(settings, tmp_path / "jobs")
    handle = launcher.submit(job(tmp_path, sleep_s=0.4).model_copy(update={"gpu": "0"}))
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))
    assert FindingKind.FREE_LOCK_FILE not in kinds(reconcile(launcher.jobs_root))
    wait_until(lambda: launcher.poll(handle).state is JobState.FINISHED)

    assert FindingKind.FREE_LOCK_FILE in kinds(reconcile(launcher.jobs_root))
    assert (locks / "gpu-0.lock").exists()


@pytest.mark.integration
def test_a_machine_that_does_not_answer_changes_nothing(
    ssh_settings: SshSettings, tmp_path: Path
) -> None:
    settings = ssh_settings.model_copy(update={"share_connection": False})
    launcher = SshLauncher(settings, tmp_path / "jobs")
    one = job(tmp_path)
    launcher.submit(one)
    directory = JobDirectory(launcher.jobs_root / one.job_id)
    away = settings.model_copy(update={"port": 1})
    directory.update("moved", launcher=away)
    before = (directory.path / "job.json").read_bytes()

    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.UNREACHABLE]
    assert (directory.path / "job.json").read_bytes() == before

    directory.update("back", launcher=settings)
    wait_until(lambda: launcher.poll(directory.read().handle).state is JobState.FINISHED)
    assert kinds(reconcile(launcher.jobs_root)) == [FindingKind.COLLECTED]


def test_the_record_alone_is_enough(launcher: LocalLauncher, tmp_path: Path) -> None:
    """Settings may change while a job runs: the job keeps those it was started under."""
    one = job(tmp_path)
    handle = launcher.submit(one)
    record = JobDirectory(launcher.jobs_root / one.job_id).read()
    assert record.launcher == launcher.settings
    assert record.launcher.worker_file == WORKER
    assert record.handle == handle
