"""Explain and repair what killed processes left of rerun jobs.

It works from the jobs' directories alone, may run at any time, and finds nothing to do the
second time. A job that a living process drives is left to that process.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from assets.reruns.launchers.drive import overdue
from assets.reruns.launchers.job import JobRecord, JobState, JobStatus
from assets.reruns.launchers.job_directory import (
    PREPARING,
    RECORD,
    JobDirectory,
    JobInUseError,
)
from assets.reruns.launchers.launcher import (
    Launcher,
    LauncherError,
    LauncherUnreachableError,
    launcher_for,
)
from assets.reruns.launchers.supervisor import processes, run_directory


class FindingKind(StrEnum):
    """What was found; the value is what a person reads first."""

    DRIVEN = "driven by a living process"
    RUNNING = "running without a launcher; follow it, or let its deadline end it"
    WAITING = "waiting in the queue without a launcher"
    COLLECTED = "finished; the result is collected now"
    ENDED = "ended without a result"
    LOST = "lost"
    NEVER_STARTED = "never started, and will not start any more"
    STOPPED = "ran past its deadline; stopped"
    ORPHANS_KILLED = "processes without a supervisor; killed"
    HALF_PREPARED = "a job directory was never completed; removed"
    HALF_COPIED = "a copy was never completed; removed"
    UNREACHABLE = "its machine does not answer; nothing was changed"
    DAMAGED = "its record cannot be read; nothing was changed"
    FREE_LOCK_FILE = "a GPU lock file that nobody holds; harmless, the kernel freed the lock"


@dataclass(frozen=True)
class ReconcileFinding:
    """One thing that was found; `repaired` says whether something was changed."""

    subject: str
    kind: FindingKind
    detail: str
    repaired: bool


def reconcile(jobs_root: Path) -> list[ReconcileFinding]:
    """Look at every job that is not settled, repair what can be repaired, and say so."""
    if not jobs_root.is_dir():
        return []
    findings: list[ReconcileFinding] = []
    lock_directories: set[Path] = set()
    for path in sorted(jobs_root.iterdir()):
        if path.name.startswith(PREPARING):
            findings += _remove_half_prepared(path)
        elif (path / RECORD).exists():
            findings += _reconcile_job(JobDirectory(path), lock_directories)
    findings += _kill_orphans(jobs_root)
    for directory in sorted(lock_directories):
        findings += _free_lock_files(directory)
    return findings


def _reconcile_job(directory: JobDirectory, locks: set[Path]) -> list[ReconcileFinding]:
    name = directory.path.name
    if not (directory.path / RECORD).is_file():
        detail = f"{RECORD} is no plain file"
        return [ReconcileFinding(name, FindingKind.DAMAGED, detail, repaired=False)]
    try:
        record = directory.read()
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]["msg"]
        return [ReconcileFinding(name, FindingKind.DAMAGED, fault, repaired=False)]
    if record.launcher.kind == "local" and record.launcher.lock_dir is not None:
        locks.add(Path(record.launcher.lock_dir))
    if record.is_settled and not _has_uncollected_result(directory, record):
        return []
    try:
        with directory.exclusive():
            return _repair(directory)
    except JobInUseError as error:
        return [ReconcileFinding(name, FindingKind.DRIVEN, str(error), repaired=False)]
    except LauncherUnreachableError as error:
        return [ReconcileFinding(name, FindingKind.UNREACHABLE, str(error), repaired=False)]


def _repair(directory: JobDirectory) -> list[ReconcileFinding]:
    """Bring one job, which this process holds, to where it should be."""
    findings = _remove_half_copies(directory)
    record = directory.read()
    launcher = launcher_for(record.launcher, directory.path.parent)
    status = launcher.poll(record.handle)
    reason = overdue(record, status)
    if not status.state.is_final and reason is not None:
        launcher.cancel(record.handle, reason)
        status = launcher.poll(record.handle)
        findings.append(_finding(directory, FindingKind.STOPPED, status.detail))
    elif record.submitted_at is None and not launcher.attach(record.handle):
        # The launcher died before it started anything. After a cancel nothing can start.
        launcher.cancel(record.handle)
        if not launcher.attach(record.handle):
            detail = "the launcher ended before it started the job"
            directory.observe(JobStatus(state=JobState.LOST, detail=detail))
            return [*findings, _finding(directory, FindingKind.NEVER_STARTED, detail)]
        status = launcher.poll(record.handle)
    return [*findings, _settle(directory, launcher, record, status)]


def _settle(
    directory: JobDirectory, launcher: Launcher, record: JobRecord, status: JobStatus
) -> ReconcileFinding:
    """Write down where the job stands, collecting a finished one."""
    if not status.state.is_final:
        directory.observe(status)
        waiting = status.state is JobState.QUEUED
        kind = FindingKind.WAITING if waiting else FindingKind.RUNNING
        return ReconcileFinding(directory.path.name, kind, status.detail, repaired=False)
    if status.state is JobState.FINISHED:
        try:
            launcher.collect(record.handle)
        except LauncherUnreachableError:
            raise
        except LauncherError as error:
            return ReconcileFinding(
                directory.path.name, FindingKind.ENDED, str(error), repaired=False
            )
        return _finding(directory, FindingKind.COLLECTED, str(directory.result))
    launcher.cancel(record.handle)  # nothing of it may go on holding the GPU
    directory.observe(status)
    lost = status.state is JobState.LOST
    kind = FindingKind.LOST if lost else FindingKind.ENDED
    return _finding(directory, kind, f"{status.state}: {status.detail}")


def _has_uncollected_result(directory: JobDirectory, record: JobRecord) -> bool:
    """Whether a complete result lies here that nobody noted, as after a late requeue."""
    if record.collected_at is not None:
        return False
    found = run_directory.result_state(directory.path, record.bundle_id, record.nonce)
    return found == "complete"


def _remove_half_prepared(path: Path) -> list[ReconcileFinding]:
    try:
        with JobDirectory(path).exclusive():
            shutil.rmtree(path)
    except JobInUseError:
        return []
    except FileNotFoundError:  # its maker finished it just now
        return []
    return [ReconcileFinding(path.name, FindingKind.HALF_PREPARED, str(path), repaired=True)]


def _remove_half_copies(directory: JobDirectory) -> list[ReconcileFinding]:
    findings = []
    for pattern in (f".partial-{run_directory.RESULT}", ".sending-*", f".{RECORD}.*"):
        for path in directory.path.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            findings.append(_finding(directory, FindingKind.HALF_COPIED, path.name))
    return findings


def _kill_orphans(jobs_root: Path) -> list[ReconcileFinding]:
    """Kill processes of any job here that run on while no supervisor stands over them."""
    root = jobs_root.resolve()
    orphaned = {
        Path(name)
        for name in processes.all_marked().values()
        if Path(name).parent == root and not run_directory.lock_is_held(Path(name))
    }
    findings = []
    for path in sorted(orphaned):
        killed = processes.kill_marked(path)
        if killed:
            pids = ", ".join(map(str, killed))
            findings.append(
                ReconcileFinding(
                    path.name, FindingKind.ORPHANS_KILLED, f"pids {pids}", repaired=True
                )
            )
    return findings


def _free_lock_files(directory: Path) -> list[ReconcileFinding]:
    """List GPU lock files nobody holds.

    They stay, because removing one could let two workers in; and /proc/locks is read, because
    trying the lock could turn a worker away that asks for it in the same moment.
    """
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    held = {field.rpartition(":")[2] for line in lines for field in line if field.count(":") == 2}
    return [
        ReconcileFinding(path.name, FindingKind.FREE_LOCK_FILE, str(path), repaired=False)
        for path in sorted(directory.glob("gpu-*.lock"))
        if str(path.stat().st_ino) not in held
    ]


def _finding(directory: JobDirectory, kind: FindingKind, detail: str) -> ReconcileFinding:
    return ReconcileFinding(directory.path.name, kind, detail, repaired=True)
