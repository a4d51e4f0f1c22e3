"""Take one job from submission to its result: follow, report, hold the deadline, collect.

The same code follows a new job and one that another process started. It returns what became
of the job; reading the result bundle is not done here.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from assets.reruns.launchers.job import (
    JobHandle,
    JobRecord,
    JobState,
    JobStatus,
    RerunJob,
    StopReason,
)
from assets.reruns.launchers.job_directory import JobDirectory, JobInUseError
from assets.reruns.launchers.launcher import Launcher, LauncherError, LauncherUnreachableError
from assets.reruns.launchers.supervisor.run_directory import LOG_CHUNK_BYTES

_Answer = TypeVar("_Answer")

_FIRST_WAIT_S = 0.05
_SUBMISSIONS = 3
_SUPERVISOR_FIRST_S = 2.0
"""The supervisor has this much longer than its own ladder before a launcher steps in."""
_GIVE_UP_AFTER_S = 60.0
"""How long past the deadline, or past a cancel, an unreachable machine is still asked."""


@dataclass(frozen=True)
class WorkerEvent:
    """One line the worker printed.

    name is its `event` for a JSON line, else `log`. A candidate can print such lines too: they
    are progress for people; what counts is in the result bundle alone.
    """

    name: str
    line: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobOutcome:
    """What became of a job; `result` is the local result directory of a finished one."""

    job_id: str
    status: JobStatus
    result: Path | None


def run_job(
    launcher: Launcher,
    job: RerunJob,
    on_event: Callable[[WorkerEvent], None],
    should_cancel: Callable[[], bool],
) -> JobOutcome:
    """Submit a job, or attach to it, and see it through.

    Whatever ends this call early (an interrupt, an error in `on_event`) stops the job first.
    Raises what `Launcher.submit` raises, and LauncherUnreachableError when the machine did not
    answer until well past the deadline: the job then stays open for `reconcile`.
    """
    try:
        handle = _submit(launcher, job)
    except Exception:
        raise
    except BaseException:  # an interrupt: the job may have been started already
        _stop_interrupted(launcher, job)
        raise
    return follow(launcher, handle, on_event, should_cancel)


def follow(
    launcher: Launcher,
    handle: JobHandle,
    on_event: Callable[[WorkerEvent], None],
    should_cancel: Callable[[], bool],
) -> JobOutcome:
    """See a submitted job through; events start with the first line the worker printed."""
    directory = JobDirectory(launcher.jobs_root / handle.job_id)
    with directory.exclusive():
        drive = _Drive(launcher, handle, directory, on_event, should_cancel)
        try:
            return drive.to_the_end()
        except LauncherUnreachableError:
            raise
        except BaseException:
            with contextlib.suppress(LauncherError):
                launcher.cancel(handle)
                directory.observe(launcher.poll(handle))
            raise


def _submit(launcher: Launcher, job: RerunJob) -> JobHandle:
    """Submit, again when the connection broke: a submission that arrived is only attached to."""
    for _ in range(_SUBMISSIONS - 1):
        with contextlib.suppress(LauncherUnreachableError):
            return launcher.submit(job)
        time.sleep(launcher.settings.poll_interval_s)
    return launcher.submit(job)


def _stop_interrupted(launcher: Launcher, job: RerunJob) -> None:
    directory = JobDirectory(launcher.jobs_root / job.job_id)
    quiet = contextlib.suppress(FileNotFoundError, JobInUseError, LauncherError)
    with quiet, directory.exclusive():
        launcher.cancel(directory.read().handle)
        directory.observe(launcher.poll(directory.read().handle))


def overdue(record: JobRecord, status: JobStatus) -> StopReason | None:
    """Say why a job should have been stopped by now, on time as its own supervisor counts it."""
    patience_s = record.launcher.stop.total_s + _SUPERVISOR_FIRST_S
    if status.running_s is not None and status.running_s > record.deadline_s + patience_s:
        return "deadline"
    if datetime.now(UTC) > record.deadline_at + timedelta(seconds=patience_s):
        return "queue_timeout" if status.state is JobState.QUEUED else "deadline"
    return None


class _Drive:
    """One job while this process follows it."""

    def __init__(
        self,
        launcher: Launcher,
        handle: JobHandle,
        directory: JobDirectory,
        on_event: Callable[[WorkerEvent], None],
        should_cancel: Callable[[], bool],
    ) -> None:
        self._launcher = launcher
        self._handle = handle
        self._directory = directory
        self._on_event = on_event
        self._should_cancel = should_cancel
        self._log = _LogReader(launcher, handle)
        self._asked_to_stop = False
        self._record = directory.read()
        latest = self._record.deadline_at + timedelta(seconds=launcher.settings.stop.total_s)
        self._give_up_at = latest + timedelta(seconds=_GIVE_UP_AFTER_S)

    def to_the_end(self) -> JobOutcome:
        status = self._until_final()
        self._report(status)
        result = None
        if status.state is JobState.FINISHED:
            result = self._retry(lambda: self._launcher.collect(self._handle))
        else:
            if not self._asked_to_stop:
                # Nothing of a job that failed or vanished may go on holding the GPU.
                self._retry(lambda: self._launcher.cancel(self._handle))
            self._directory.observe(status)
        return JobOutcome(self._handle.job_id, status, result)

    def _until_final(self) -> JobStatus:
        if self._record.status.state.is_final:
            return self._record.status
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                status = self._launcher.poll(self._handle)
                self._directory.observe(status)
                if status.state.is_final:
                    return status
                self._report(status)
                self._stop_where_due(status)
            except LauncherUnreachableError as error:
                self._on_event(WorkerEvent("unreachable", str(error)))
                self._give_up_where_due(error)
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, self._launcher.settings.poll_interval_s)

    def _stop_where_due(self, status: JobStatus) -> None:
        reason: StopReason | None = overdue(self._record, status)
        if reason is None and self._should_cancel():
            reason = "cancelled"
        if reason is None:
            return
        if not self._asked_to_stop:
            patience_s = self._launcher.settings.stop.total_s + _GIVE_UP_AFTER_S
            soon = datetime.now(UTC) + timedelta(seconds=patience_s)
            self._give_up_at = min(self._give_up_at, soon)
        self._launcher.cancel(self._handle, reason)
        self._asked_to_stop = True

    def _report(self, status: JobStatus) -> None:
        if status.log_size_bytes == self._log.offset:
            return
        try:
            for event in self._log.new_events():
                self._on_event(event)
        except LauncherUnreachableError as error:
            self._on_event(WorkerEvent("unreachable", str(error)))

    def _give_up_where_due(self, error: LauncherUnreachableError) -> None:
        if datetime.now(UTC) > self._give_up_at:
            self._directory.update("unreachable", str(error))
            raise LauncherUnreachableError(
                f"job {self._handle.job_id}: {error}. Its own deadline holds; `reconcile` "
                "collects the result when the machine answers again"
            ) from error

    def _retry(self, call: Callable[[], _Answer]) -> _Answer:
        """Repeat a call while the machine does not answer, until it is time to give up."""
        give_up_at = time.monotonic() + _GIVE_UP_AFTER_S
        while True:
            try:
                return call()
            except LauncherUnreachableError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(self._launcher.settings.poll_interval_s)


class _LogReader:
    """Turns the growing log into events, one whole line at a time."""

    def __init__(self, launcher: Launcher, handle: JobHandle) -> None:
        self._launcher = launcher
        self._handle = handle
        self.offset = 0
        self._rest = b""

    def new_events(self) -> Iterator[WorkerEvent]:
        while chunk := self._launcher.logs(self._handle, self.offset):
            self.offset += len(chunk)
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                yield _event(line.decode(errors="replace"))
            if len(chunk) < LOG_CHUNK_BYTES:
                return


def _event(line: str) -> WorkerEvent:
    try:
        content = json.loads(line)
    except ValueError:
        return WorkerEvent("log", line)
    if isinstance(content, dict) and isinstance(content.get("event"), str):
        return WorkerEvent(content.pop("event"), line, content)
    return WorkerEvent("log", line)
