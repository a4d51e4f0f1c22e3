"""Runs whose process died are ended by name; runs that live are left alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pipelines.history import tidy
from pipelines.instance import prepare_home
from pipelines.liveness import alive, end_dead_runs, hold
from pipelines.run_coordinator import RunCoordinator
from pipelines.settings import Keeping
from tests.pipelines.conftest import ROOT, Deployment


@dg.op
def nothing() -> None:
    """What the runs of these tests are about."""


@dg.job
def idle() -> None:
    nothing()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One home for all: a test minds only its own runs."""
    home = tmp_path_factory.mktemp("dagster") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", "")
        prepare_home(home)
        yield home


@pytest.fixture(scope="module")
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.get() as found:
        yield found


def run_in(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> str:
    return instance.create_run_for_job(idle, status=status).run_id


def status_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def failure_of(instance: dg.DagsterInstance, run_id: str) -> str:
    [event] = instance.all_logs(run_id, of_type=dg.DagsterEventType.PIPELINE_FAILURE)
    return event.user_message or (event.dagster_event.message if event.dagster_event else "") or ""


HOLDER = """
import sys, time
from pathlib import Path
from pipelines.liveness import hold
hold(Path(sys.argv[1]), sys.argv[2], "The holder of this test")
print("held", flush=True)
time.sleep(100)
"""


def holder(home: Path, run_id: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home), run_id],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_run_is_ended_once_its_process_is_dead(
    instance: dg.DagsterInstance, home: Path, number: signal.Signals
) -> None:
    run_id = run_in(instance, dg.DagsterRunStatus.STARTED)
    process = holder(home, run_id)
    assert end_dead_runs(instance, home) == []
    assert status_of(instance, run_id) is dg.DagsterRunStatus.STARTED
    process.send_signal(number)
    process.wait()
    assert end_dead_runs(instance, home) == [run_id]
    assert status_of(instance, run_id) is dg.DagsterRunStatus.FAILURE
    said = failure_of(instance, run_id)
    assert said.startswith(f"The holder of this test, process {process.pid} on ")
    assert "died without ending this run" in said
    assert end_dead_runs(instance, home) == []
    assert list((home / "alive").iterdir()) == []


def test_a_run_that_was_being_cancelled_is_cancelled(
    instance: dg.DagsterInstance, home: Path
) -> None:
    run_id = run_in(instance, dg.DagsterRunStatus.CANCELING)
    descriptor = hold(home, run_id, "A step")
    assert descriptor is not None
    os.close(descriptor)
    assert end_dead_runs(instance, home) == [run_id]
    assert status_of(instance, run_id) is dg.DagsterRunStatus.CANCELED


@pytest.mark.parametrize(
    "status",
    [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING],
)
def test_a_run_without_a_lock_is_nobodys_to_end(
    instance: dg.DagsterInstance, home: Path, status: dg.DagsterRunStatus
) -> None:
    run_id = run_in(instance, status)
    assert end_dead_runs(instance, home) == []
    assert status_of(instance, run_id) is status


def test_a_finished_run_stays_as_it_ended(instance: dg.DagsterInstance, home: Path) -> None:
    run_id = run_in(instance, dg.DagsterRunStatus.SUCCESS)
    for known in (run_id, "a-run-that-was-never-made"):
        descriptor = hold(home, known, "A step")
        assert descriptor is not None
        os.close(descriptor)
    assert end_dead_runs(instance, home) == []
    assert status_of(instance, run_id) is dg.DagsterRunStatus.SUCCESS
    assert list((home / "alive").iterdir()) == []


def test_a_block_that_ends_well_leaves_no_lock_and_one_that_fails_does(
    instance: dg.DagsterInstance, home: Path
) -> None:
    with alive(home, "well", "A command"):
        assert end_dead_runs(instance, home) == []
    assert not (home / "alive" / "well.lock").exists()
    run_id = run_in(instance, dg.DagsterRunStatus.STARTED)
    with pytest.raises(KeyboardInterrupt), alive(home, run_id, "A command"):
        raise KeyboardInterrupt
    assert end_dead_runs(instance, home) == [run_id]


def test_a_run_that_begins_is_never_taken_for_a_dead_one(
    instance: dg.DagsterInstance, home: Path
) -> None:
    """The file of a lock is never seen before it is locked."""
    stop = threading.Event()
    ended: list[str] = []

    def look() -> None:
        while not stop.is_set():
            ended.extend(end_dead_runs(instance, home))

    run_id = run_in(instance, dg.DagsterRunStatus.STARTED)
    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            descriptor = hold(home, run_id, "A step")
            assert descriptor is not None
            # As the process does at its end, when the run has said so.
            (home / "alive" / f"{run_id}.lock").unlink()
            os.close(descriptor)
    finally:
        stop.set()
        looking.join()
    assert ended == []
    assert status_of(instance, run_id) is dg.DagsterRunStatus.STARTED
    assert list((home / "alive").iterdir()) == []


def test_the_queue_is_asked_about_only_after_dead_runs_are_ended(
    instance: dg.DagsterInstance, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(instance.run_coordinator, RunCoordinator)
    run_id = run_in(instance, dg.DagsterRunStatus.STARTED)
    descriptor = hold(home, run_id, "A step")
    assert descriptor is not None
    # What Dagster's daemon does before each look at the queue.
    instance.get_concurrency_config()
    assert status_of(instance, run_id) is dg.DagsterRunStatus.STARTED
    os.close(descriptor)
    instance.get_concurrency_config()
    assert status_of(instance, run_id) is dg.DagsterRunStatus.FAILURE


def test_history_is_put_in_order_with_dead_runs_ended(
    instance: dg.DagsterInstance, home: Path
) -> None:
    run_id = run_in(instance, dg.DagsterRunStatus.STARTED)
    descriptor = hold(home, run_id, "A step")
    assert descriptor is not None
    os.close(descriptor)
    tidy(instance, home, Keeping())
    assert status_of(instance, run_id) is dg.DagsterRunStatus.FAILURE


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_the_next_ingest_ends_one_that_was_killed(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    first = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", "ingest"],
        env=deployment.environment, cwd=deployment.root,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    monkeypatch.setenv("DAGSTER_HOME", "")
    prepare_home(deployment.settings.dagster_home)
    with dg.DagsterInstance.get() as instance:
        started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
        end = time.monotonic() + 60
        while not (runs := instance.get_runs(filters=started)):
            assert time.monotonic() < end
            time.sleep(0.1)
        [killed] = runs
        first.send_signal(number)
        first.wait()
        assert status_of(instance, killed.run_id) is dg.DagsterRunStatus.STARTED
        deployment.ingest()
        assert status_of(instance, killed.run_id) is dg.DagsterRunStatus.FAILURE
        said = failure_of(instance, killed.run_id)
        assert said.startswith(f"The command line's ingest, process {first.pid} on ")
