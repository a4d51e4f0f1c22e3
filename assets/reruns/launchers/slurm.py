"""The launcher for Slurm: one batch job per bundle, or one array for a list of bundles.

The run directory is the job directory, which the nodes must see under the same path. Slurm
decides when and where; the supervisor inside the job holds our deadline to the second, and
the directory says what happened, also when Slurm has forgotten the job and keeps no accounting.
"""

from __future__ import annotations

import hashlib
import math
import shlex
import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from assets.reruns.launchers import job_directory
from assets.reruns.launchers.job import (
    FailureReason,
    JobHandle,
    JobRecord,
    JobState,
    JobStatus,
    RerunJob,
    SlurmHandle,
    StopReason,
)
from assets.reruns.launchers.job_directory import DuplicateJobError, JobDirectory
from assets.reruns.launchers.launcher import LauncherError, LauncherUnreachableError, read_evidence
from assets.reruns.launchers.local import check_worker_file, collect_in_place
from assets.reruns.launchers.settings import LauncherNotConfiguredError, SlurmSettings
from assets.reruns.launchers.slurm_queue import ENDINGS, LOST_STATES, QueueEntry, SlurmQueue
from assets.reruns.launchers.supervisor import processes, run_directory, supervise

_ARRAYS = ".arrays"
_STARTS_AND_ENDS_S = 60.0
"""Added to the time limit in Slurm, so that our own deadline always comes first."""


class SlurmLauncher:
    """Runs workers as Slurm jobs."""

    def __init__(self, settings: SlurmSettings, jobs_root: Path) -> None:
        self.settings = settings
        self.jobs_root = jobs_root
        self._queue = SlurmQueue(settings.config_file, settings.command_timeout_s)

    def check(self) -> None:
        """See `Launcher.check`."""
        check_worker_file(self.settings.worker_file)
        if shutil.which("sbatch") is None:
            raise LauncherNotConfiguredError("slurm: there is no sbatch on this machine")
        config = self.settings.config_file
        if config is not None and not config.is_file():
            raise LauncherNotConfiguredError(f"slurm.config_file: {config} does not exist")
        try:
            self._queue.check()
        except LauncherError as error:
            raise LauncherNotConfiguredError(str(error)) from error

    def submit(self, job: RerunJob) -> JobHandle:
        """See `Launcher.submit`."""
        handle = SlurmHandle(job_id=job.job_id, job_name=job.job_id)
        return self._submit([job], [handle], array=None)[0]

    def submit_array(self, jobs: list[RerunJob]) -> list[JobHandle]:
        """Queue several jobs as one array, a task for each; one GPU each as `gres` says.

        The same list gives the same array, so that a repeated call attaches as `submit` does.
        """
        if not jobs:
            return []
        names = "\n".join(job.job_id for job in jobs)
        array = f"array-{hashlib.sha256(names.encode()).hexdigest()[:16]}"
        handles = [
            SlurmHandle(job_id=job.job_id, job_name=array, array_index=index)
            for index, job in enumerate(jobs)
        ]
        return self._submit(jobs, handles, array)

    def _submit(
        self, jobs: list[RerunJob], handles: list[SlurmHandle], array: str | None
    ) -> list[JobHandle]:
        directories = [
            job_directory.prepare(self.jobs_root, job, self.settings, handle)
            for job, handle in zip(jobs, handles, strict=True)
        ]
        with ExitStack() as held:
            locks = tuple(held.enter_context(item.exclusive()) for item in directories)
            records = [directory.read() for directory in directories]
            _refuse_mixture(records, handles)
            if any(record.submitted_at is None for record in records):
                # An earlier process may have been killed between sbatch and job.json.
                slurm_job_id = self._queue.find_by_name(handles[0].job_name)
                if slurm_job_id is None:
                    slurm_job_id = self._sbatch(directories, jobs, array, locks)
                for directory in directories:
                    _note_submitted(directory, slurm_job_id)
            return [directory.read().handle for directory in directories]

    def _sbatch(
        self,
        directories: list[JobDirectory],
        jobs: list[RerunJob],
        array: str | None,
        locks: tuple[int, ...],
    ) -> str:
        limit_s = max(job.deadline_s for job in jobs) + self.settings.stop.total_s
        minutes = math.ceil((limit_s + _STARTS_AND_ENDS_S) / 60)
        output = self.jobs_root / _ARRAYS if array else directories[0].path
        output.mkdir(exist_ok=True)
        arguments = [
            f"--job-name={array or directories[0].path.name}",
            f"--time={minutes}",
            "--nodes=1",
            "--ntasks=1",
            "--requeue",
            "--open-mode=append",
            f"--output={output / ('slurm-%A_%a.out' if array else 'slurm-%j.out')}",
            f"--chdir={self.jobs_root.resolve()}",
            "--export=NIL",
        ]
        optional = {
            "gres": self.settings.gres,
            "partition": self.settings.partition,
            "account": self.settings.account,
        }
        arguments += [f"--{name}={value}" for name, value in optional.items() if value is not None]
        arguments += [f"--array=0-{len(jobs) - 1}"] if array else []
        arguments += self.settings.extra_arguments
        return self._queue.submit(arguments, self._script(directories), keep_open=locks)

    def _script(self, directories: list[JobDirectory]) -> str:
        """Write the batch script: choose the run directory, become its supervisor."""
        cases = "\n".join(
            f"  {index}) run={shlex.quote(str(directory.path))} ;;"
            for index, directory in enumerate(directories)
        )
        return (
            "#!/bin/sh\n"
            'export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}"\n'
            'export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"\n'
            f'case "${{SLURM_ARRAY_TASK_ID:-0}}" in\n{cases}\nesac\n'
            f"exec {shlex.quote(self.settings.python)} "
            f'"$run/{job_directory.SUPERVISOR}" run "$run" --repeat\n'
        )

    def attach(self, handle: JobHandle) -> bool:
        """See `Launcher.attach`."""
        directory = self._directory(handle)
        with directory.exclusive():
            found = self._found(directory).slurm_job_id
            if found is not None:
                _note_submitted(directory, found)
        return found is not None or (directory.path / run_directory.PROCESS).exists()

    def poll(self, handle: JobHandle) -> JobStatus:
        """See `Launcher.poll`."""
        directory = self._directory(handle)
        evidence = run_directory.gather(directory.path)
        seen = read_evidence(evidence)
        if seen.state is JobState.FINISHED:
            return seen
        mine = self._found(directory)
        if mine.slurm_job_id is None:
            return seen if seen.state.is_final else _waiting("not submitted yet")
        entry = self._queue.look(mine.slurm_job_id, mine.array_index)
        # Slurm was asked second: what it says has ended may have left its last words meanwhile.
        return _combine(run_directory.gather(directory.path), entry, mine)

    def cancel(self, handle: JobHandle, reason: StopReason = "cancelled") -> None:
        """See `Launcher.cancel`.

        The supervisor is asked through the directory, and Slurm is told: either is enough.
        """
        directory = self._directory(handle)
        supervise.request_cancel(directory.path, reason)
        mine = self._found(directory)
        if mine.slurm_job_id is None:
            return
        limit_s = self.settings.stop.total_s + 10.0
        give_up_at = time.monotonic() + limit_s
        self._queue.cancel(mine.slurm_job_id, mine.array_index)
        while time.monotonic() < give_up_at:
            entry = self._queue.look(mine.slurm_job_id, mine.array_index)
            over = entry is None or not (entry.is_waiting or entry.is_running)
            if over and not run_directory.lock_is_held(directory.path):
                processes.kill_marked(directory.path)
                return
            time.sleep(0.1)
        raise LauncherUnreachableError(
            f"job {handle.job_id}: Slurm job {mine.slurm_job_id} still runs {limit_s:g} s after "
            "it was cancelled; its node may not answer"
        )

    def collect(self, handle: JobHandle) -> Path:
        """See `Launcher.collect`."""
        return collect_in_place(self._directory(handle), self.poll(handle))

    def logs(self, handle: JobHandle, from_offset: int) -> bytes:
        """See `Launcher.logs`."""
        return run_directory.read_log(self._directory(handle).path, from_offset)

    def _directory(self, handle: JobHandle) -> JobDirectory:
        return JobDirectory(self.jobs_root / handle.job_id)

    def _found(self, directory: JobDirectory) -> SlurmHandle:
        """Return the handle with Slurm's job id, looked up by name where it was never noted."""
        mine = _mine(directory.read().handle)
        if mine.slurm_job_id is not None:
            return mine
        slurm_job_id = self._queue.find_by_name(mine.job_name)
        return mine.model_copy(update={"slurm_job_id": slurm_job_id})


def _combine(
    evidence: run_directory.Evidence, entry: QueueEntry | None, handle: SlurmHandle
) -> JobStatus:
    """Bring together what the directory shows and what Slurm says."""
    name = f"Slurm job {handle.slurm_job_id}"
    seen = read_evidence(evidence)
    if seen.state is JobState.FINISHED:
        return seen
    if entry is not None and _is_of_an_earlier_attempt(evidence, entry):
        seen = _waiting("not started again yet")
    if entry is not None and entry.is_waiting:
        if entry.restarts:
            return _waiting(f"{name} was requeued (restart {entry.restarts}): {entry.reason}")
        return _waiting(f"{name} waits: {entry.reason}")
    if entry is not None and entry.is_running:
        if seen.state is JobState.QUEUED:
            return JobStatus(state=JobState.RUNNING, detail=f"{name} starts")
        if evidence.exit is not None and evidence.exit["reason"] == "parent_died":
            return seen  # Slurm has not noticed yet that its own job step was killed
        if seen.state.is_final:
            return JobStatus(
                state=JobState.RUNNING,
                detail=f"{name} is ending: {seen.detail}",
                running_s=seen.running_s,
            )
        return seen
    if seen.state in (JobState.FAILED, JobState.CANCELLED, JobState.RUNNING):
        return seen
    if entry is None:
        return JobStatus(
            state=JobState.LOST,
            detail=f"{name} is forgotten by Slurm and left no result: {seen.detail}",
        )
    sentence = f"{name}: {ENDINGS.get(entry.state, entry.state)} ({entry.state}, {entry.reason})"
    if entry.state in LOST_STATES:
        return JobStatus(state=JobState.LOST, detail=sentence)
    if entry.state == "CANCELLED":
        return JobStatus(state=JobState.CANCELLED, detail=sentence)
    reason = (
        FailureReason.DEADLINE
        if entry.state in ("TIMEOUT", "DEADLINE")
        else FailureReason.BATCH_SYSTEM
    )
    return JobStatus(state=JobState.FAILED, reason=reason, detail=sentence)


def _refuse_mixture(records: list[JobRecord], handles: list[SlurmHandle]) -> None:
    """Refuse jobs that were submitted in another way, or ended before they were submitted."""
    for record, handle in zip(records, handles, strict=True):
        known = _mine(record.handle)
        if (known.job_name, known.array_index) != (handle.job_name, handle.array_index):
            raise DuplicateJobError(
                f"job {record.job_id} exists already as {known.job_name} in Slurm, not as "
                f"{handle.job_name}; choose another job id"
            )
        if record.submitted_at is None and record.status.state.is_final:
            raise DuplicateJobError(
                f"job {record.job_id} ended before it was submitted ({record.status.state}); "
                "choose another job id"
            )


def _is_of_an_earlier_attempt(evidence: run_directory.Evidence, entry: QueueEntry) -> bool:
    """Whether the directory still shows how the attempt before a requeue ended."""
    if evidence.phase != "ended" or evidence.process is None or entry.restarts is None:
        return False
    return bool(evidence.process["slurm_restarts"] < entry.restarts)


def _waiting(detail: str) -> JobStatus:
    return JobStatus(state=JobState.QUEUED, detail=detail)


def _note_submitted(directory: JobDirectory, slurm_job_id: str) -> None:
    if directory.read().submitted_at is None:
        handle = _mine(directory.read().handle)
        directory.update(
            "submitted",
            f"Slurm job {slurm_job_id}",
            submitted_at=datetime.now(UTC),
            handle=handle.model_copy(update={"slurm_job_id": slurm_job_id}),
        )


def _mine(handle: JobHandle) -> SlurmHandle:
    if not isinstance(handle, SlurmHandle):
        raise TypeError(f"job {handle.job_id} belongs to the launcher {handle.kind!r}, not slurm")
    return handle
