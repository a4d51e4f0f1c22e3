"""kill -9 at random moments, over all launchers; what must hold afterwards always holds.

Each injection is one short job and one kill: of the launcher's process, of the worker, of its
supervisor, of the Slurm job or its step daemon, of the process that collects. Then `reconcile`
runs until nothing is left to do. The moments come from a seed; KERNELINDEX_FAULT_SEED gives
another one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assets.reruns.launchers.job import JobState, RerunJob, SlurmHandle
from assets.reruns.launchers.job_directory import PREPARING, JobDirectory
from assets.reruns.launchers.launcher import launcher_for
from assets.reruns.launchers.reconcile import FindingKind, ReconcileFinding, reconcile
from assets.reruns.launchers.settings import (
    LauncherSettings,
    LocalSettings,
    SlurmSettings,
    SshSettings,
)
from assets.reruns.launchers.supervisor import processes, run_directory
from tests.reruns.launchers.builders import QUICK_STOP, Ledger, job, result_of, wait_until
from tests.reruns.launchers.services import SlurmCluster

SEED = os.environ.get("KERNELINDEX_FAULT_SEED", "20")
DEADLINE_S = 4.0
AT_ONCE = 4
LAUNCHER_PROCESS = "tests.reruns.launchers.launcher_process"
REPOSITORY = Path(__file__).parents[3]


@dataclass
class Injection:
    """One job that something happens to."""

    job: RerunJob
    ledger: Ledger
    chance: random.Random


@dataclass
class Field:
    """One launcher under fire."""

    settings: LauncherSettings
    folder: Path
    reached: list[str] = field(default_factory=list)

    @property
    def jobs_root(self) -> Path:
        return self.folder / "jobs"

    def inject(self, kind: str, count: int, hit: Callable[[Injection], None], **wish: int) -> None:
        """Make `count` jobs and let `hit` happen to each, a few at a time."""
        injections = []
        for number in range(count):
            chance = random.Random(f"{SEED}-{self.settings.kind}-{kind}-{number}")
            ledger = Ledger(self.folder / f"ledger-{kind}-{number}")
            deaf = chance.random() < 0.3
            one = job(
                self.folder,
                f"{kind}-{number}",
                deadline_s=DEADLINE_S,
                sleep_s=chance.uniform(0.1, 0.8),
                ledger=str(ledger.path),
                ignore_signals=deaf,
                ignore_deadline=deaf,
                **wish,
            )
            injections.append(Injection(one, ledger, chance))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(hit, injections))
        self.settle()
        print(self.settings.kind, kind, "hit while", ", ".join(self.reached))
        for injection in injections:
            self.judge(injection)

    def process(self, mode: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", LAUNCHER_PROCESS, mode, str(self.jobs_root), *arguments],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def kill_launcher(self, injection: Injection, latest_s: float) -> None:
        """Kill the launcher's process between its first write and `latest_s` after that."""
        process = self.process(
            "run", self.settings.model_dump_json(), injection.job.model_dump_json()
        )
        wait_until(lambda: self.jobs_root.exists() or process.poll() is not None)
        prefix = f"{PREPARING}{injection.job.job_id}-"
        wait_until(
            lambda: (
                (self.jobs_root / injection.job.job_id).exists()
                or any(self.jobs_root.glob(f"{prefix}*"))
                or process.poll() is not None
            )
        )
        time.sleep(injection.chance.uniform(0, latest_s))
        process.kill()
        process.communicate()
        self.note(injection)

    def start(self, injection: Injection) -> Path:
        """Submit from this process and return the run directory once the worker works."""
        launcher = launcher_for(self.settings, self.jobs_root)
        launcher.submit(injection.job)
        path = self.run_path(injection.job)
        wait_until((path / run_directory.PROCESS).exists)
        return path

    def kill_worker(self, injection: Injection) -> None:
        path = self.start(injection)
        time.sleep(injection.chance.uniform(0, 0.6))
        for pid in processes.marked(path):
            kill(pid)
        self.note(injection)

    def kill_supervisor(self, injection: Injection) -> None:
        path = self.start(injection)
        time.sleep(injection.chance.uniform(0, 0.6))
        process = run_directory.read_json(path / run_directory.PROCESS)
        assert process is not None
        kill(process["pid"])
        self.note(injection)

    def run_path(self, one: RerunJob) -> Path:
        if isinstance(self.settings, SshSettings):
            return Path(self.settings.remote_root) / one.job_id
        return self.jobs_root / one.job_id

    def note(self, injection: Injection) -> None:
        """Keep how far the job was when it was hit; pytest shows it when a test fails."""
        directory = JobDirectory(self.jobs_root / injection.job.job_id)
        if directory.path.exists() and directory.read().collected_at is not None:
            self.reached.append("collected")
        elif injection.ledger.count("published"):
            self.reached.append("published")
        elif injection.ledger.count("started"):
            self.reached.append("measuring")
        else:
            self.reached.append("before the start")

    def whole_run_s(self) -> float:
        """How long a launcher takes that nobody kills, from its first write to its end.

        Several at once take longer, which the factors in the tests allow for.
        """
        one = job(self.folder, "unharmed", deadline_s=DEADLINE_S, sleep_s=0.3)
        process = self.process("run", self.settings.model_dump_json(), one.model_dump_json())
        wait_until(self.jobs_root.exists)
        started_at = time.monotonic()
        process.communicate()
        assert (self.jobs_root / "unharmed" / "result").exists()
        return time.monotonic() - started_at

    def settle(self) -> None:
        """Reconcile until nothing is going on; that takes no longer than the jobs may live."""
        give_up_at = time.monotonic() + DEADLINE_S + QUICK_STOP.total_s + 10
        open_kinds = (FindingKind.DRIVEN, FindingKind.RUNNING, FindingKind.WAITING)
        while any(finding.kind in open_kinds for finding in self.reconcile()):
            assert time.monotonic() < give_up_at, reconcile(self.jobs_root)
            time.sleep(0.2)
        assert [finding for finding in self.reconcile() if finding.repaired] == []

    def reconcile(self) -> list[ReconcileFinding]:
        findings = reconcile(self.jobs_root)
        bad = [item for item in findings if item.kind is FindingKind.DAMAGED]
        assert bad == []
        return findings

    def judge(self, injection: Injection) -> None:
        """What must hold for every job, whatever was killed."""
        directory = JobDirectory(self.jobs_root / injection.job.job_id)
        assert processes.marked(self.run_path(injection.job)) == []
        published = injection.ledger.count("published")
        assert published <= 1
        if not directory.path.exists():
            assert injection.ledger.count("started") == 0
            return
        record = directory.read()
        events = [line.event for line in record.history]
        assert record.is_settled, record
        if directory.result.exists():
            assert record.status.state is JobState.FINISHED, record
            assert events.count("collected") == 1
            result_of(directory.result)
        else:
            assert published == 0, record
            assert record.status.state in (JobState.LOST, JobState.FAILED, JobState.CANCELLED)
            assert "collected" not in events
        left = [path.name for path in directory.path.iterdir() if path.name.startswith(".partial")]
        assert left == []
        assert not list(self.jobs_root.glob(f"{PREPARING}*"))

    def kill_collectors(self, count: int, latest_s: float, result_bytes: int) -> None:
        """Finish `count` jobs, then kill `count` processes that collect them, at random moments."""
        chance = random.Random(f"{SEED}-{self.settings.kind}-collector")
        launcher = launcher_for(self.settings, self.jobs_root)
        jobs = []
        for number in range(count):
            ledger = Ledger(self.folder / f"ledger-collector-{number}")
            one = job(
                self.folder,
                f"collector-{number}",
                deadline_s=DEADLINE_S,
                sleep_s=0.0,
                ledger=str(ledger.path),
                result_bytes=result_bytes,
            )
            jobs.append(Injection(one, ledger, chance))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            handles = list(pool.map(launcher.submit, [injection.job for injection in jobs]))
        for handle in handles:
            wait_until(lambda handle=handle: launcher.poll(handle).state is JobState.FINISHED)
        for _ in range(count):
            process = self.process("reconcile")
            time.sleep(chance.uniform(0.4, latest_s))
            process.kill()
            process.communicate()
        self.settle()
        for injection in jobs:
            assert injection.ledger.count("published") == 1
            self.judge(injection)
            assert (self.jobs_root / injection.job.job_id / "result").exists()


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def local(local_settings: LocalSettings, tmp_path: Path) -> Field:
    return Field(local_settings, tmp_path)


@pytest.fixture
def ssh(ssh_settings: SshSettings, tmp_path: Path) -> Field:
    return Field(ssh_settings, tmp_path)


@pytest.fixture
def slurm(slurm_settings: SlurmSettings, tmp_path: Path) -> Field:
    return Field(slurm_settings.model_copy(update={"gres": None}), tmp_path)


def test_14_kills_of_a_local_launcher(local: Field) -> None:
    latest_s = 2.5 * local.whole_run_s()
    local.inject("launcher", 14, lambda injection: local.kill_launcher(injection, latest_s))


def test_8_kills_of_a_local_worker(local: Field) -> None:
    local.inject("worker", 8, local.kill_worker)


def test_6_kills_of_a_local_supervisor(local: Field) -> None:
    local.inject("supervisor", 6, local.kill_supervisor, leave_child_s=60)


def test_4_kills_of_a_local_collector(local: Field) -> None:
    local.kill_collectors(4, 0.9, 20_000_000)


@pytest.mark.integration
def test_6_kills_of_an_ssh_launcher(ssh: Field) -> None:
    latest_s = 1.2 * ssh.whole_run_s()
    ssh.inject("launcher", 6, lambda injection: ssh.kill_launcher(injection, latest_s))


@pytest.mark.integration
def test_4_kills_of_an_ssh_worker(ssh: Field) -> None:
    ssh.inject("worker", 4, ssh.kill_worker)


@pytest.mark.integration
def test_4_kills_of_an_ssh_supervisor(ssh: Field) -> None:
    ssh.inject("supervisor", 4, ssh.kill_supervisor, leave_child_s=60)


@pytest.mark.integration
def test_4_kills_of_an_ssh_collector(ssh: Field) -> None:
    ssh.kill_collectors(4, 2.5, 5_000_000)


@pytest.mark.integration
def test_8_kills_of_a_slurm_launcher(slurm: Field) -> None:
    latest_s = 2.0 * slurm.whole_run_s()
    slurm.inject("launcher", 8, lambda injection: slurm.kill_launcher(injection, latest_s))


@pytest.mark.integration
def test_4_kills_of_a_slurm_worker(slurm: Field) -> None:
    slurm.inject("worker", 4, slurm.kill_worker)


@pytest.mark.integration
def test_4_kills_of_a_supervisor_under_slurm(slurm: Field) -> None:
    slurm.inject("supervisor", 4, slurm.kill_supervisor, leave_child_s=60)


@pytest.mark.integration
def test_4_kills_of_a_slurm_job(slurm: Field, slurm_cluster: SlurmCluster) -> None:
    def hit(injection: Injection) -> None:
        path = slurm.start(injection)
        time.sleep(injection.chance.uniform(0, 0.6))
        handle = JobDirectory(path).read().handle
        assert isinstance(handle, SlurmHandle)
        slurm_cluster.command("scancel", "--full", "--signal=KILL", f"{handle.slurm_job_id}")
        slurm.note(injection)

    slurm.inject("job", 4, hit, leave_child_s=60)


@pytest.mark.integration
def test_4_kills_of_a_slurm_step_daemon(slurm: Field, slurm_cluster: SlurmCluster) -> None:
    def hit(injection: Injection) -> None:
        path = slurm.start(injection)
        time.sleep(injection.chance.uniform(0, 0.6))
        handle = JobDirectory(path).read().handle
        assert isinstance(handle, SlurmHandle)
        for pid in slurm_cluster.step_daemons(f"{handle.slurm_job_id}"):
            kill(pid)
        slurm.note(injection)

    slurm.inject("step", 4, hit)


@pytest.mark.integration
def test_2_kills_of_a_slurm_collector(slurm: Field) -> None:
    slurm.kill_collectors(2, 0.9, 20_000_000)
