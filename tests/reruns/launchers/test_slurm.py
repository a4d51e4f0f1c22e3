"""The launcher for Slurm, against a real Slurm on this machine with two GPUs that are none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assets.reruns.launchers.drive import WorkerEvent, follow, run_job
from assets.reruns.launchers.job import FailureReason, JobState, RerunJob, SlurmHandle
from assets.reruns.launchers.job_directory import DuplicateJobError
from assets.reruns.launchers.launcher import LauncherUnreachableError
from assets.reruns.launchers.settings import LauncherNotConfiguredError, SlurmSettings
from assets.reruns.launchers.slurm import SlurmLauncher
from assets.reruns.launchers.supervisor import processes
from tests.reruns.launchers.builders import (
    QUICK_STOP,
    Ledger,
    directory_of,
    ignore,
    job,
    never,
    result_of,
    wait_until,
)
from tests.reruns.launchers.services import SlurmCluster, free_port

pytestmark = pytest.mark.integration


@pytest.fixture
def launcher(slurm_settings: SlurmSettings, tmp_path: Path) -> SlurmLauncher:
    return SlurmLauncher(slurm_settings, tmp_path / "jobs")


@pytest.fixture
def failing_node(slurm_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """A cluster whose node the test may kill; it is back and free afterwards."""
    yield slurm_cluster
    slurm_cluster.heal()


def handle_of(launcher: SlurmLauncher, one: RerunJob) -> SlurmHandle:
    handle = directory_of(launcher, one).read().handle
    assert isinstance(handle, SlurmHandle)
    return handle


def is_measuring(launcher: SlurmLauncher, one: RerunJob) -> Callable[[], bool]:
    return lambda: b"item_started" in launcher.logs(handle_of(launcher, one), 0)


def test_a_job_is_queued_runs_on_one_gpu_and_is_collected(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    launcher.check()
    events: list[WorkerEvent] = []
    one = job(tmp_path)

    outcome = run_job(launcher, one, events.append, never)

    assert outcome.status.state is JobState.FINISHED
    assert outcome.result is not None
    content = result_of(outcome.result)
    assert content["gpus"] in ("0", "1")
    assert {"PATH", "HOME", "SLURM_JOB_ID"} <= set(content["environment"])
    assert [event.name for event in events][-1] == "finished"


def test_the_environment_of_whoever_submits_does_not_travel(
    launcher: SlurmLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "a secret")
    monkeypatch.setenv("TORCH_HOME", "/submitter")
    outcome = run_job(launcher, job(tmp_path), ignore, never)
    assert outcome.result is not None
    assert not {"HF_TOKEN", "TORCH_HOME"} & set(result_of(outcome.result)["environment"])


def test_a_third_job_waits_until_one_of_two_gpus_is_free(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    jobs = [job(tmp_path, sleep_s=1.0) for _ in range(3)]
    handles = [launcher.submit(one) for one in jobs]
    wait_until(lambda: [launcher.poll(one).state for one in handles].count(JobState.RUNNING) == 2)
    waiting = [launcher.poll(handle) for handle in handles]
    assert sorted(status.state for status in waiting) == ["queued", "running", "running"]
    assert all(
        follow(launcher, handle, ignore, never).status.state is JobState.FINISHED
        for handle in handles
    )


def test_an_array_gives_each_bundle_a_gpu_of_its_own(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    jobs = [job(tmp_path, sleep_s=1.0, ledger=str(ledger.path)) for _ in range(2)]

    handles = launcher.submit_array(jobs)
    again = launcher.submit_array(jobs)
    outcomes = [follow(launcher, handle, ignore, never) for handle in handles]

    assert handles == again
    assert len({handle_of(launcher, one).slurm_job_id for one in jobs}) == 1
    assert [outcome.status.state for outcome in outcomes] == [JobState.FINISHED] * 2
    assert sorted(result_of(outcome.result)["gpus"] for outcome in outcomes if outcome.result) == [
        "0",
        "1",
    ]
    assert ledger.count("started") == 2


def test_one_task_of_an_array_is_cancelled_alone(launcher: SlurmLauncher, tmp_path: Path) -> None:
    jobs = [job(tmp_path, sleep_s=60), job(tmp_path, sleep_s=1.0)]
    handles = launcher.submit_array(jobs)
    wait_until(is_measuring(launcher, jobs[0]))
    assert follow(launcher, handles[0], ignore, lambda: True).status.state is JobState.CANCELLED
    assert follow(launcher, handles[1], ignore, never).status.state is JobState.FINISHED


def test_a_job_of_an_array_is_not_submitted_alone_as_well(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path)
    (handle,) = launcher.submit_array([one])
    with pytest.raises(DuplicateJobError, match="exists already as array-"):
        launcher.submit(one)
    launcher.cancel(handle)


def test_a_submission_that_was_not_noted_is_found_by_its_name(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    one = job(tmp_path, ledger=str(ledger.path))
    handle = launcher.submit(one)
    assert isinstance(handle, SlurmHandle)
    # As if the launcher had been killed between sbatch and job.json.
    forgotten = handle.model_copy(update={"slurm_job_id": None})
    directory_of(launcher, one).update("forgotten", handle=forgotten, submitted_at=None)

    assert launcher.submit(one) == handle
    assert follow(launcher, handle, ignore, never).status.state is JobState.FINISHED
    assert ledger.count("started") == 1


@pytest.mark.parametrize("deaf", [False, True])
def test_a_cancel_frees_the_gpu_within_seconds(
    launcher: SlurmLauncher, tmp_path: Path, deaf: bool
) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=deaf, leave_child_s=60)
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))

    asked_at = time.monotonic()
    outcome = follow(launcher, handle, ignore, lambda: True)

    assert outcome.status.state is JobState.CANCELLED
    assert time.monotonic() - asked_at < QUICK_STOP.total_s + 4.0
    assert processes.marked(directory_of(launcher, one).path) == []


def test_a_waiting_job_is_cancelled_without_ever_running(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    settings = launcher.settings.model_copy(update={"extra_arguments": ("--hold",)})
    launcher = SlurmLauncher(settings, tmp_path / "jobs")
    outcome = run_job(launcher, job(tmp_path), ignore, lambda: True)
    assert outcome.status.state is JobState.CANCELLED
    assert launcher.logs(launcher.submit(job(tmp_path)), 0) == b""


def test_a_job_that_waits_too_long_is_taken_out_of_the_queue(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    held = {"extra_arguments": ("--hold",), "queue_timeout_s": 0.1}
    settings = launcher.settings.model_copy(update=held)
    launcher = SlurmLauncher(settings, tmp_path / "jobs")
    one = job(tmp_path, deadline_s=0.1)
    outcome = run_job(launcher, one, ignore, never)
    assert outcome.status.reason is FailureReason.QUEUE_TIMEOUT


def test_the_deadline_is_held_to_the_second_though_slurm_counts_minutes(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, deadline_s=0.5, sleep_s=60, ignore_signals=True, ignore_deadline=True)
    launcher.submit(one)
    wait_until(is_measuring(launcher, one))
    started_at = time.monotonic()
    outcome = run_job(launcher, one, ignore, never)
    assert outcome.status.reason is FailureReason.DEADLINE
    assert time.monotonic() - started_at < 0.5 + QUICK_STOP.total_s + 2.0
    assert processes.marked(directory_of(launcher, one).path) == []


def test_slurm_killing_the_job_is_told_with_slurms_reason(
    launcher: SlurmLauncher, tmp_path: Path, slurm_cluster: SlurmCluster
) -> None:
    one = job(tmp_path, sleep_s=60)
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))
    slurm_cluster.command("scancel", f"{handle_of(launcher, one).slurm_job_id}")
    wait_until(lambda: launcher.poll(handle).state.is_final)
    assert launcher.poll(handle).reason is FailureReason.WORKER_KILLED or (
        launcher.poll(handle).state is JobState.CANCELLED
    )
    assert processes.marked(directory_of(launcher, one).path) == []


def test_a_requeued_job_runs_again_and_publishes_once(
    launcher: SlurmLauncher, tmp_path: Path, slurm_cluster: SlurmCluster
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    one = job(tmp_path, sleep_s=0.7, ledger=str(ledger.path))
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))

    slurm_cluster.command("scontrol", "requeue", f"{handle_of(launcher, one).slurm_job_id}")
    wait_until(lambda: "requeued" in launcher.poll(handle).detail)
    outcome = follow(launcher, handle, ignore, never)

    assert outcome.status.state is JobState.FINISHED
    assert (ledger.count("started"), ledger.count("published")) == (2, 1)


def test_a_job_requeued_after_its_result_does_not_measure_again(
    launcher: SlurmLauncher, tmp_path: Path, slurm_cluster: SlurmCluster
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    one = job(tmp_path, ledger=str(ledger.path))
    outcome = run_job(launcher, one, ignore, never)
    assert outcome.result is not None
    before = result_of(outcome.result)
    slurm_job_id = handle_of(launcher, one).slurm_job_id

    def state() -> str:
        return slurm_cluster.command("squeue", "-h", "-t", "all", "-j", f"{slurm_job_id}", "-o%T")

    wait_until(lambda: state() == "COMPLETED")

    slurm_cluster.command("scontrol", "requeue", f"{slurm_job_id}")
    wait_until(lambda: state() != "COMPLETED")
    wait_until(lambda: state() == "COMPLETED", 30)

    assert ledger.count("started") == 1
    assert result_of(outcome.result) == before


def test_a_failed_node_means_a_requeue_and_one_result(
    launcher: SlurmLauncher, tmp_path: Path, failing_node: SlurmCluster
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    one = job(tmp_path, sleep_s=2.0, ledger=str(ledger.path))
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))

    failing_node.crash_node(f"{handle_of(launcher, one).slurm_job_id}")
    assert processes.marked(directory_of(launcher, one).path) == []
    wait_until(lambda: "requeued" in launcher.poll(handle).detail, 30)
    failing_node.start_node()
    outcome = follow(launcher, handle, ignore, never)

    assert outcome.status.state is JobState.FINISHED, outcome
    assert ledger.count("published") == 1


def test_a_failed_node_without_requeue_means_lost(
    launcher: SlurmLauncher, tmp_path: Path, failing_node: SlurmCluster
) -> None:
    settings = launcher.settings.model_copy(update={"extra_arguments": ("--no-requeue",)})
    launcher = SlurmLauncher(settings, tmp_path / "jobs")
    one = job(tmp_path, sleep_s=60)
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))

    failing_node.crash_node(f"{handle_of(launcher, one).slurm_job_id}")
    failing_node.give_up_node()
    wait_until(lambda: launcher.poll(handle).state.is_final, 30)

    status = launcher.poll(handle)
    assert status.state is JobState.LOST
    assert "NODE_FAIL" in status.detail


def test_a_step_that_is_killed_takes_the_worker_along(
    launcher: SlurmLauncher, tmp_path: Path, failing_node: SlurmCluster
) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=True)
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))
    path = directory_of(launcher, one).path

    for pid in failing_node.step_daemons(f"{handle_of(launcher, one).slurm_job_id}"):
        os.kill(pid, signal.SIGKILL)

    wait_until(lambda: processes.marked(path) == [], QUICK_STOP.total_s + 2)
    outcome = follow(launcher, handle, ignore, never)
    assert outcome.status.reason is FailureReason.WORKER_KILLED, outcome
    wait_until(lambda: failing_node.command("squeue", "-h") == "")


def test_a_controller_that_is_away_is_asked_again_and_cancel_still_works(
    launcher: SlurmLauncher, tmp_path: Path, slurm_cluster: SlurmCluster
) -> None:
    one = job(tmp_path, sleep_s=60, ignore_signals=True)
    handle = launcher.submit(one)
    wait_until(is_measuring(launcher, one))
    slurm_cluster.stop_controller()
    try:
        with pytest.raises(LauncherUnreachableError, match="controller"):
            launcher.poll(handle)
        with pytest.raises(LauncherUnreachableError, match="controller"):
            launcher.cancel(handle)
        wait_until(
            lambda: processes.marked(directory_of(launcher, one).path) == [],
            QUICK_STOP.total_s + 2,
        )
    finally:
        slurm_cluster.start_controller()
        wait_until(lambda: slurm_cluster.node_state() in ("idle", "mixed"), 30)
    assert follow(launcher, handle, ignore, never).status.state is JobState.CANCELLED


def test_a_job_that_slurm_has_forgotten_is_read_from_its_directory(
    launcher: SlurmLauncher, tmp_path: Path
) -> None:
    one = job(tmp_path, exit_code=3)
    handle = launcher.submit(one)
    assert isinstance(handle, SlurmHandle)
    assert follow(launcher, handle, ignore, never).status.reason is FailureReason.INFRASTRUCTURE
    never_was = handle.model_copy(update={"slurm_job_id": "999999"})
    directory_of(launcher, one).update("forgotten", handle=never_was)
    assert launcher.poll(never_was).reason is FailureReason.INFRASTRUCTURE

    other = job(tmp_path)
    forgotten = launcher.submit(other)
    launcher.cancel(forgotten)
    (directory_of(launcher, other).path / "cancel.json").unlink()
    assert isinstance(forgotten, SlurmHandle)
    never_was = forgotten.model_copy(update={"slurm_job_id": "999999"})
    directory_of(launcher, other).update("forgotten", handle=never_was)
    (directory_of(launcher, other).path / "exit.json").unlink(missing_ok=True)
    status = launcher.poll(never_was)
    assert status.state is JobState.LOST
    assert "forgotten by Slurm" in status.detail


def test_check_says_that_no_controller_answers(launcher: SlurmLauncher, tmp_path: Path) -> None:
    assert launcher.settings.config_file is not None
    deaf = tmp_path / "slurm.conf"
    lines = launcher.settings.config_file.read_text().splitlines()
    port = f"SlurmctldPort={free_port()}"
    deaf.write_text("\n".join(port if line.startswith("SlurmctldPort") else line for line in lines))
    for config_file, message in (
        (deaf, r"slurm: .*is DOWN"),
        (tmp_path / "none.conf", r"slurm\.config_file"),
    ):
        wrong = {"config_file": config_file, "command_timeout_s": 2}
        with pytest.raises(LauncherNotConfiguredError, match=message):
            SlurmLauncher(launcher.settings.model_copy(update=wrong), tmp_path).check()
