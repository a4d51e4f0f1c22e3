"""The launcher over ssh, against a real sshd on loopback."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assets.reruns.launchers.drive import WorkerEvent, follow, run_job
from assets.reruns.launchers.job import FailureReason, JobState, RerunJob
from assets.reruns.launchers.job_directory import JobDirectory
from assets.reruns.launchers.launcher import LauncherError, LauncherUnreachableError
from assets.reruns.launchers.settings import LauncherNotConfiguredError, SshSettings
from assets.reruns.launchers.ssh import SshLauncher
from assets.reruns.launchers.supervisor import processes
from tests.reruns.launchers.builders import (
    QUICK_STOP,
    Ledger,
    ignore,
    job,
    never,
    result_of,
    wait_until,
)
from tests.reruns.launchers.services import SshServer

pytestmark = pytest.mark.integration


@pytest.fixture
def launcher(ssh_settings: SshSettings, tmp_path: Path) -> Iterator[SshLauncher]:
    launcher = SshLauncher(ssh_settings, tmp_path / "jobs")
    yield launcher
    launcher.close()


def remote_run(launcher: SshLauncher, one: RerunJob) -> Path:
    return Path(launcher.settings.remote_root) / one.job_id


def test_a_job_runs_there_and_its_result_and_log_come_here(
    launcher: SshLauncher, tmp_path: Path
) -> None:
    launcher.check()
    events: list[WorkerEvent] = []
    one = job(tmp_path, result_bytes=300_000)

    outcome = run_job(launcher, one, events.append, never)

    assert outcome.status.state is JobState.FINISHED
    assert outcome.result == (tmp_path / "jobs" / one.job_id / "result")
    result_of(outcome.result)
    assert next(event.name for event in events) == "started"
    assert [event.name for event in events][-1] == "finished"
    assert b"finished" in launcher.logs(launcher.submit(one), 0)
    assert not remote_run(launcher, one).exists()


def test_the_run_there_is_kept_where_that_is_set(launcher: SshLauncher, tmp_path: Path) -> None:
    settings = launcher.settings.model_copy(update={"keep_remote": True})
    launcher = SshLauncher(settings, tmp_path / "jobs")
    one = job(tmp_path)
    run_job(launcher, one, ignore, never)
    assert (remote_run(launcher, one) / "result" / "result.json").exists()


def test_a_connection_for_each_call_works_too(launcher: SshLauncher, tmp_path: Path) -> None:
    settings = launcher.settings.model_copy(update={"share_connection": False})
    launcher = SshLauncher(settings, tmp_path / "jobs")
    assert run_job(launcher, job(tmp_path), ignore, never).status.state is JobState.FINISHED


def test_submitting_a_job_again_starts_it_once(launcher: SshLauncher, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    one = job(tmp_path, sleep_s=0.5, ledger=str(ledger.path))
    handle = launcher.submit(one)
    # As if the launcher had been killed before it could note that the job was started.
    record = JobDirectory(tmp_path / "jobs" / one.job_id)
    record.update("forgotten", submitted_at=None)

    assert launcher.submit(one) == handle
    assert follow(launcher, handle, ignore, never).status.state is JobState.FINISHED
    assert ledger.count("started") == 1


@pytest.mark.parametrize("deaf", [False, True])
def test_a_cancel_frees_the_other_machine_within_seconds(
    launcher: SshLauncher, tmp_path: Path, deaf: bool
) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=deaf, leave_child_s=60)
    handle = launcher.submit(one)
    wait_until(lambda: b"item_started" in launcher.logs(handle, 0))
    wait_until(lambda: len(processes.marked(remote_run(launcher, one))) == 2)

    asked_at = time.time()
    outcome = follow(launcher, handle, ignore, lambda: True)

    assert outcome.status.state is JobState.CANCELLED
    ended = json.loads((remote_run(launcher, one) / "exit.json").read_text())
    assert ended["ended_at_s"] - asked_at < QUICK_STOP.total_s + 5.0
    assert processes.marked(remote_run(launcher, one)) == []


def test_the_deadline_holds_while_nobody_is_connected(
    launcher: SshLauncher, tmp_path: Path, sshd: SshServer
) -> None:
    one = job(tmp_path, deadline_s=1.0, sleep_s=60, ignore_signals=True, ignore_deadline=True)
    handle = launcher.submit(one)
    sshd.stop()
    try:
        with pytest.raises(LauncherUnreachableError):
            launcher.poll(handle)
        wait_until(lambda: processes.marked(remote_run(launcher, one)) != [], 1.0)
        wait_until(
            lambda: processes.marked(remote_run(launcher, one)) == [], 1.0 + QUICK_STOP.total_s + 1
        )
    finally:
        sshd.start()
    status = launcher.poll(handle)
    assert (status.state, status.reason) == (JobState.FAILED, FailureReason.DEADLINE)


def test_a_lost_connection_is_survived_by_asking_again(
    launcher: SshLauncher, tmp_path: Path, sshd: SshServer
) -> None:
    events: list[WorkerEvent] = []
    one = job(tmp_path, sleep_s=1.5)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_job, launcher, one, events.append, never)
        wait_until(lambda: any(event.name == "item_started" for event in events))
        sshd.stop()
        try:
            wait_until(lambda: any(event.name == "unreachable" for event in events))
        finally:
            sshd.start()
        outcome = running.result(30)

    assert outcome.status.state is JobState.FINISHED
    assert "unreachable" in [event.name for event in events]
    assert [event.name for event in events].count("item_started") == 1


def test_a_killed_supervisor_there_is_reported_as_lost(
    launcher: SshLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, sleep_s=60)
    handle = launcher.submit(one)
    process = json.loads((remote_run(launcher, one) / "process.json").read_text())
    os.kill(process["pid"], signal.SIGKILL)
    wait_until(lambda: launcher.poll(handle).state is JobState.LOST)


def test_a_result_larger_than_the_limit_is_refused_and_leaves_nothing(
    launcher: SshLauncher, tmp_path: Path
) -> None:
    settings = launcher.settings.model_copy(update={"result_limit_bytes": 1000})
    launcher = SshLauncher(settings, tmp_path / "jobs")
    one = job(tmp_path, result_bytes=5000)
    with pytest.raises(LauncherError, match="more than 1000 bytes"):
        run_job(launcher, one, ignore, never)
    left = [path.name for path in (tmp_path / "jobs" / one.job_id).iterdir()]
    assert "result" not in left
    assert ".partial-result" not in left


def test_check_names_what_is_wrong(launcher: SshLauncher, tmp_path: Path) -> None:
    for wrong, message in (
        ({"python": "no-such-python"}, r"ssh\.python"),
        ({"identity_file": tmp_path / "none"}, r"ssh\.host.*Permission denied"),
        ({"known_hosts_file": tmp_path / "none"}, r"ssh\.host.*[Hh]ost key"),
        ({"port": 1}, r"ssh\.host.*refused"),
    ):
        settings = launcher.settings.model_copy(update=wrong)
        with pytest.raises(LauncherNotConfiguredError, match=f"(?s){message}"):
            SshLauncher(settings, tmp_path).check()
