"""What Slurm says about a job, read from `squeue`, `scontrol` and `sacct`.

Commands and the meaning of Slurm's job states; what that means for a rerun is in `slurm`.
Written against Slurm 22.05, with accounting and without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from assets.reruns.launchers.launcher import LauncherError, LauncherUnreachableError

WAITING_STATES = {
    "PENDING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
}
RUNNING_STATES = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"}
"""squeue(1), JOB STATE CODES; everything else is an end."""

ENDINGS = {
    "NODE_FAIL": "its node failed and Slurm did not requeue it",
    "BOOT_FAIL": "its node did not boot",
    "PREEMPTED": "another job preempted it",
    "REVOKED": "a sibling cluster took it",
    "TIMEOUT": "it ran past its time limit in Slurm",
    "DEADLINE": "it passed its deadline in Slurm",
    "OUT_OF_MEMORY": "it ran out of memory",
    "CANCELLED": "it was cancelled",
    "FAILED": "it failed",
    "COMPLETED": "it completed",
}
LOST_STATES = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"}

_UNREACHABLE = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted or received",
    "Protocol authentication error",
    "Invalid authentication credential",
    "Munge",
    "MUNGE",
)
"""Parts of messages that say: ask again later."""

_UNKNOWN_JOB = "Invalid job id specified"
_FORMAT = "%i|%F|%K|%T|%r|%j"


@dataclass(frozen=True)
class QueueEntry:
    """One job, or one task of an array, as Slurm knows it.

    job_id is what `scancel` takes: `123`, or `123_4` for a task. restarts is None where it was
    not asked for.
    """

    job_id: str
    state: str
    reason: str
    restarts: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it still waits for a node."""
        return self.state in WAITING_STATES

    @property
    def is_running(self) -> bool:
        """Whether something of it may run."""
        return self.state in RUNNING_STATES


class SlurmQueue:
    """The Slurm commands this project uses."""

    def __init__(self, config_file: Path | None, timeout_s: float) -> None:
        self._config_file = config_file
        self._timeout_s = timeout_s

    def submit(self, arguments: list[str], script: str, keep_open: tuple[int, ...] = ()) -> str:
        """Queue a batch script and return the job id."""
        answer = self._run(["sbatch", "--parsable", *arguments], script, keep_open)
        return answer.strip().splitlines()[-1].split(";")[0]

    def find_by_name(self, job_name: str) -> str | None:
        """Return the newest job (or array) of this name that Slurm still remembers."""
        lines = self._run(
            ["squeue", "--noheader", "--states=all", f"--name={job_name}", f"--format={_FORMAT}"]
        ).splitlines()
        found = {line.split("|")[1].strip() for line in lines if line.strip()}
        return max(found, key=int, default=None)

    def look(self, job_id: str, array_index: int | None) -> QueueEntry | None:
        """Ask squeue, then the accounting; None when neither knows the job any more."""
        wanted = job_id if array_index is None else f"{job_id}_{array_index}"
        try:
            lines = self._run(
                [
                    "squeue",
                    "--noheader",
                    "--array",
                    "--states=all",
                    f"--jobs={wanted}",
                    f"--format={_FORMAT}",
                ]
            ).splitlines()
        except UnknownJobError:
            lines = []
        for line in lines:
            _, _, _, state, reason, _ = (part.strip() for part in line.split("|"))
            return QueueEntry(wanted, state, reason, self._restarts(wanted))
        return self._from_accounting(wanted)

    def cancel(self, job_id: str, array_index: int | None) -> None:
        """Cancel a job or one task; one that has ended is no error."""
        wanted = job_id if array_index is None else f"{job_id}_{array_index}"
        try:
            self._run(["scancel", wanted])
        except UnknownJobError:
            return

    def check(self) -> str:
        """Return the version of the controller, which must answer."""
        self._run(["scontrol", "ping"])
        return self._run(["sinfo", "--version"]).strip()

    def _restarts(self, wanted: str) -> int | None:
        try:
            text = self._run(["scontrol", "--oneliner", "show", "job", wanted])
        except UnknownJobError:
            return None
        fields = dict(field.partition("=")[::2] for field in text.split())
        return int(fields["Restarts"]) if fields.get("Restarts", "").isdigit() else None

    def _from_accounting(self, wanted: str) -> QueueEntry | None:
        """Ask sacct; None when there is no accounting or it does not know the job."""
        if shutil.which("sacct") is None:
            return None
        try:
            lines = self._run(
                [
                    "sacct",
                    "--noheader",
                    "--parsable2",
                    "--allocations",
                    f"--jobs={wanted}",
                    "--format=JobID,State,Reason",
                ]
            ).splitlines()
        except LauncherUnreachableError:
            raise
        except LauncherError:  # "Slurm accounting storage is disabled"
            return None
        for line in lines:
            _, state, reason = line.split("|")
            return QueueEntry(wanted, state.split()[0], reason)  # "CANCELLED by 0"
        return None

    def _run(
        self, command: list[str], script: str | None = None, keep_open: tuple[int, ...] = ()
    ) -> str:
        environment = dict(os.environ)
        if self._config_file is not None:
            environment["SLURM_CONF"] = str(self._config_file)
        try:
            done = subprocess.run(
                command,
                input=script or "",
                capture_output=True,
                text=True,
                env=environment,
                pass_fds=keep_open,
                timeout=self._timeout_s,
                check=False,
            )
        except FileNotFoundError as error:
            raise LauncherError(f"slurm: there is no {command[0]} on this machine") from error
        except subprocess.TimeoutExpired as error:
            raise LauncherUnreachableError(
                f"slurm: {command[0]} gave no answer within {error.timeout:g} s"
            ) from error
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
        if _UNKNOWN_JOB in said:
            raise UnknownJobError(said)
        if any(part in said for part in _UNREACHABLE):
            raise LauncherUnreachableError(f"slurm: {command[0]}: {said}")
        raise LauncherError(f"slurm: {command[0]}: {said}")


class UnknownJobError(LauncherError):
    """Slurm does not know the job: it ended longer ago than MinJobAge, or never was."""
