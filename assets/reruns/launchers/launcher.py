"""The protocol all launchers keep, their errors, and the one reading of a run's evidence.

`launcher_for` is the only place that maps a setting to a launcher.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from assets.reruns.launchers.job import (
    FailureReason,
    JobHandle,
    JobState,
    JobStatus,
    RerunJob,
    StopReason,
)
from assets.reruns.launchers.settings import (
    LauncherSettings,
    LocalSettings,
    SlurmSettings,
    SshSettings,
)
from assets.reruns.launchers.supervisor.run_directory import Evidence


class LauncherError(Exception):
    """A launcher's command failed for good; the message holds what it said."""


class LauncherUnreachableError(LauncherError):
    """The machine or batch system does not answer now; the job may run on: ask again."""


class NoResultError(LauncherError):
    """There is no complete result bundle to collect."""


class Launcher(Protocol):
    """Takes jobs to a GPU and brings results back.

    All methods may be called from any process that has the jobs' folder, at any time, again.
    Everything may raise LauncherUnreachableError.
    """

    @property
    def settings(self) -> LauncherSettings:
        """What this launcher was made from."""

    @property
    def jobs_root(self) -> Path:
        """Where the jobs' directories are."""

    def check(self) -> None:
        """Raise LauncherNotConfiguredError unless the worker could be started now."""

    def submit(self, job: RerunJob) -> JobHandle:
        """Start the job, or attach to it when an earlier submission already did.

        Raises BundleError, DuplicateJobError and JobInUseError before anything starts.
        """

    def attach(self, handle: JobHandle) -> bool:
        """Say whether the job was ever started; note in its record what was not noted then."""

    def poll(self, handle: JobHandle) -> JobStatus:
        """Say where the job stands; changes nothing."""

    def cancel(self, handle: JobHandle, reason: StopReason = "cancelled") -> None:
        """Stop the job and return when nothing of it runs; no error when it has ended."""

    def collect(self, handle: JobHandle) -> Path:
        """Return the local result directory, copied here once; raises NoResultError."""

    def logs(self, handle: JobHandle, from_offset: int) -> bytes:
        """Return what the worker printed from this byte on, possibly nothing."""


_REASON_BY_EXIT_CODE = {
    2: (FailureReason.REFUSED_BUNDLE, "the worker refused the bundle"),
    3: (FailureReason.INFRASTRUCTURE, "the worker met an infrastructure error"),
    4: (FailureReason.GPU_BUSY, "another job holds the GPU's lock"),
    126: (FailureReason.INFRASTRUCTURE, "the worker could not be started"),
    127: (FailureReason.INFRASTRUCTURE, "the worker could not be started"),
}
"""The worker's exit codes, and those of a shell for programs that do not start."""


def read_evidence(evidence: Evidence) -> JobStatus:
    """Turn what is found in a run directory into a job's status."""
    measured = {"running_s": evidence.running_s, "log_size_bytes": evidence.log_size_bytes}
    return _status(evidence).model_copy(update=measured)


def _status(evidence: Evidence) -> JobStatus:
    if evidence.phase == "running":
        return JobStatus(state=JobState.RUNNING)
    if evidence.result == "complete":
        return JobStatus(state=JobState.FINISHED, detail="the result bundle is complete")
    if evidence.result == "foreign":
        return _failed(
            FailureReason.FOREIGN_RESULT,
            "result/result.json is unreadable or names another bundle or nonce; it is not used",
        )
    if evidence.phase == "absent":
        return JobStatus(state=JobState.LOST, detail="the run directory does not exist")
    if evidence.exit is not None:
        return _ending(evidence.exit)
    if evidence.cancel_reason is not None and evidence.phase == "prepared":
        return _stopped(evidence.cancel_reason, "stopped before its start")
    if evidence.phase == "prepared":
        return JobStatus(state=JobState.QUEUED, detail="not started yet")
    if evidence.unsupervised_pids:
        pids = ", ".join(map(str, evidence.unsupervised_pids))
        detail = f"the supervisor was killed; still running: {pids}"
        return JobStatus(state=JobState.LOST, detail=detail)
    return JobStatus(
        state=JobState.LOST,
        detail="the supervisor was killed, or the machine restarted, before the worker ended",
    )


def _ending(exit_record: dict[str, object]) -> JobStatus:
    reason, detail = exit_record["reason"], str(exit_record["detail"])
    code = exit_record["exit_code"]
    if reason in ("cancelled", "deadline", "queue_timeout"):
        return _stopped(str(reason), detail)
    if reason in ("signalled", "parent_died"):
        return _failed(FailureReason.WORKER_KILLED, detail)
    if code == 0:
        return _failed(FailureReason.NO_RESULT, "the worker ended well but left no result bundle")
    if code in (130, 143):
        return JobStatus(state=JobState.CANCELLED, detail=f"the worker ended with {code}")
    if isinstance(code, int) and code in _REASON_BY_EXIT_CODE:
        failure, sentence = _REASON_BY_EXIT_CODE[code]
        return _failed(failure, f"{sentence} (exit code {code}) {detail}".strip())
    if isinstance(code, int) and code > 128:
        return _failed(FailureReason.WORKER_KILLED, f"the worker was killed by signal {code - 128}")
    return _failed(FailureReason.WORKER_CRASHED, f"the worker ended with exit code {code}")


def _stopped(reason: str, detail: str) -> JobStatus:
    if reason == "cancelled":
        return JobStatus(state=JobState.CANCELLED, detail=detail)
    return _failed(FailureReason(reason), detail)


def _failed(reason: FailureReason, detail: str) -> JobStatus:
    return JobStatus(state=JobState.FAILED, reason=reason, detail=detail)


def launcher_for(settings: LauncherSettings, jobs_root: Path) -> Launcher:
    """Return the launcher that these settings describe."""
    # Imported here, because each launcher's module needs the protocol above.
    from assets.reruns.launchers.local import LocalLauncher
    from assets.reruns.launchers.slurm import SlurmLauncher
    from assets.reruns.launchers.ssh import SshLauncher

    match settings:
        case LocalSettings():
            return LocalLauncher(settings, jobs_root)
        case SshSettings():
            return SshLauncher(settings, jobs_root)
        case SlurmSettings():
            return SlurmLauncher(settings, jobs_root)
