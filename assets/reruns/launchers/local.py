"""The launcher for this machine: the worker under another interpreter, in a session of its own.

The run directory is the job directory. A started worker needs no launcher any more: its
supervisor holds the deadline, and any later process finds it through the directory.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from assets.reruns.launchers import job_directory
from assets.reruns.launchers.job import (
    JobHandle,
    JobState,
    JobStatus,
    LocalHandle,
    RerunJob,
    StopReason,
)
from assets.reruns.launchers.job_directory import JobDirectory
from assets.reruns.launchers.launcher import LauncherError, NoResultError, read_evidence
from assets.reruns.launchers.settings import LauncherNotConfiguredError, LocalSettings
from assets.reruns.launchers.supervisor import processes, run_directory, supervise

_VERSION_TEST = "import sys; sys.exit(sys.version_info < (3, 10))"


class LocalLauncher:
    """Runs workers on this machine."""

    def __init__(self, settings: LocalSettings, jobs_root: Path) -> None:
        self.settings = settings
        self.jobs_root = jobs_root

    def check(self) -> None:
        """See `Launcher.check`."""
        check_worker_file(self.settings.worker_file)
        if shutil.which(self.settings.python) is None:
            raise LauncherNotConfiguredError(
                f"local.python: {self.settings.python} is no program on this machine"
            )
        tried = subprocess.run(
            [self.settings.python, "-c", _VERSION_TEST], capture_output=True, check=False
        )
        if tried.returncode != 0:
            raise LauncherNotConfiguredError(
                f"local.python: {self.settings.python} is no Python >= 3.10"
            )

    def submit(self, job: RerunJob) -> JobHandle:
        """See `Launcher.submit`."""
        handle = LocalHandle(job_id=job.job_id)
        directory = job_directory.prepare(self.jobs_root, job, self.settings, handle)
        with directory.exclusive():
            record = directory.read()
            if record.submitted_at is None and not record.status.state.is_final:
                self._start(directory)
                directory.update("submitted", submitted_at=datetime.now(UTC))
        return handle

    def _start(self, directory: JobDirectory) -> None:
        """Start the supervisor; a second one for the same run would refuse by itself."""
        program = directory.path / job_directory.SUPERVISOR
        try:
            started = subprocess.run(
                [self.settings.python, str(program), "start", str(directory.path)],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise LauncherError(f"local.python: {self.settings.python}: {error}") from error
        if started.returncode != 0 or json.loads(started.stdout)["said"] == "failed":
            raise LauncherError(
                f"job {directory.path.name}: the supervisor did not start: "
                f"{started.stderr.strip() or 'see supervisor.log in the job directory'}"
            )

    def attach(self, handle: JobHandle) -> bool:
        """See `Launcher.attach`."""
        directory = self._directory(handle)
        return run_directory.read_json(directory.path / run_directory.PROCESS) is not None

    def poll(self, handle: JobHandle) -> JobStatus:
        """See `Launcher.poll`."""
        return read_evidence(run_directory.gather(self._directory(handle).path))

    def cancel(self, handle: JobHandle, reason: StopReason = "cancelled") -> None:
        """See `Launcher.cancel`."""
        supervise.cancel(self._directory(handle).path, reason)

    def collect(self, handle: JobHandle) -> Path:
        """See `Launcher.collect`."""
        directory = self._directory(handle)
        return collect_in_place(directory, self.poll(handle))

    def logs(self, handle: JobHandle, from_offset: int) -> bytes:
        """See `Launcher.logs`."""
        return run_directory.read_log(self._directory(handle).path, from_offset)

    def _directory(self, handle: JobHandle) -> JobDirectory:
        return JobDirectory(self.jobs_root / handle.job_id)


def check_worker_file(worker_file: Path) -> None:
    """Raise LauncherNotConfiguredError when the worker is not there to be copied."""
    if not worker_file.is_file():
        raise LauncherNotConfiguredError(f"worker_file: {worker_file} does not exist; build it")


def collect_in_place(directory: JobDirectory, status: JobStatus) -> Path:
    """Take a result that the worker wrote straight into the job directory; noted once."""
    with directory.exclusive():
        if status.state is not JobState.FINISHED:
            raise NoResultError(f"job {directory.path.name} is {status.state}: {status.detail}")
        if not run_directory.lock_is_held(directory.path):
            processes.kill_marked(directory.path)  # left by a supervisor that was killed
        note_collected(directory, status)
    return directory.result


def note_collected(directory: JobDirectory, status: JobStatus) -> None:
    """Write down, once, that the result is here; the caller holds the job."""
    directory.observe(status)
    if directory.read().collected_at is None:
        directory.update("collected", collected_at=datetime.now(UTC))
