"""A job's directory on this machine: how it appears, its record, its lock.

`<jobs root>/<job id>/` appears by one rename with everything a worker needs, `job.json`
included, before any launcher starts anything. The record is replaced atomically at each change.
Nothing here knows how a launcher works.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assets.reruns.launchers import supervisor
from assets.reruns.launchers.job import (
    JobHandle,
    JobRecord,
    JobState,
    JobStatus,
    RerunJob,
    Transition,
)
from assets.reruns.launchers.settings import LauncherSettings, SlurmSettings
from assets.reruns.launchers.supervisor import run_directory

RECORD = "job.json"
SUPERVISOR = "supervisor.pyz"
PREPARING = ".preparing-"
_JOB_LOCK = ".job.lock"
_PATIENCE_S = 0.5


class BundleError(Exception):
    """A bundle directory that cannot be launched: no bundle.json, or links in it."""


class DuplicateJobError(Exception):
    """The job id is taken by a job with another bundle, nonce or launcher."""


class JobInUseError(Exception):
    """Another living process drives this job now."""


class JobDirectory:
    """One job on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    @property
    def result(self) -> Path:
        """Where the collected result bundle is, or will be."""
        return self.path / run_directory.RESULT

    def read(self) -> JobRecord:
        """Read `job.json`; raises FileNotFoundError for a job that does not exist."""
        return JobRecord.model_validate_json((self.path / RECORD).read_bytes())

    def update(self, event: str, detail: str = "", **changes: object) -> JobRecord:
        """Replace the record by one with these changes and one more line of history."""
        before = self.read()
        line = Transition(at=datetime.now(UTC), event=event, detail=detail)
        after = before.model_copy(update={**changes, "history": (*before.history, line)})
        run_directory.write_json(self.path / RECORD, after.model_dump(mode="json"))
        return after

    def observe(self, status: JobStatus) -> JobRecord:
        """Record a status where it differs from the known one.

        A final state stays, except that a complete result which turns up later (a requeued
        attempt, a cancel that came too late) makes any job finished: no result is lost.
        """
        record = self.read()
        known = record.status.state
        settled = known.is_final and status.state is not JobState.FINISHED
        if settled or status.state is known:
            return record
        return self.update(str(status.state), status.detail, status=status)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[int]:
        """Hold the job for this thread; yields the lock's file descriptor.

        A program that gets the descriptor (`pass_fds`) keeps the job held until it ends, also
        when this process is killed meanwhile: a submission in flight is never repeated.
        Raises JobInUseError when another process or thread holds it.
        """
        held = _held_locks()
        if self.path in held:
            yield held[self.path]
            return
        descriptor = self._lock()
        held[self.path] = descriptor
        try:
            yield descriptor
        finally:
            del held[self.path]
            # Unlocked by name: a child that another thread forks has the descriptor for a moment.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _lock(self) -> int:
        descriptor = os.open(self.path / _JOB_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        give_up_at = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() < give_up_at:
                    time.sleep(0.02)
                    continue
                os.close(descriptor)
                raise JobInUseError(
                    f"job {self.path.name}: another process is working on it; wait for it to end"
                ) from error
            return descriptor


def prepare(
    jobs_root: Path, job: RerunJob, settings: LauncherSettings, handle: JobHandle
) -> JobDirectory:
    """Make the job's directory, or find the one an earlier attempt made for the same job.

    Raises BundleError, or DuplicateJobError when the id belongs to another job.
    """
    jobs_root.mkdir(parents=True, exist_ok=True)
    directory = JobDirectory(jobs_root / job.job_id)
    bundle_id, nonce = _read_bundle(job.bundle_dir)
    if not directory.path.exists():
        staged = jobs_root / f"{PREPARING}{job.job_id}-{uuid.uuid4().hex}"
        staged.mkdir(mode=0o700)
        with JobDirectory(staged).exclusive():
            record = _new_record(job, settings, handle, bundle_id, nonce)
            _fill(staged, job, settings, record)
            with contextlib.suppress(OSError):  # lost against another process: look at its job
                staged.rename(directory.path)
                run_directory.sync_directory(jobs_root)
        if staged.exists():
            shutil.rmtree(staged)
    record = directory.read()
    if (record.bundle_id, record.nonce, record.launcher.kind) != (bundle_id, nonce, settings.kind):
        raise DuplicateJobError(
            f"job {job.job_id} exists already, with bundle {record.bundle_id} (nonce "
            f"{record.nonce}) on launcher {record.launcher.kind}; choose another job id"
        )
    return directory


def build_supervisor(target: Path) -> None:
    """Write the supervisor as one zip file that any Python >= 3.10 runs; same bytes each time."""
    package = Path(supervisor.__file__).parent
    entry = "import sys\nfrom supervisor.command_line import main\nsys.exit(main())\n"
    sources = {f"supervisor/{path.name}": path.read_text() for path in package.glob("*.py")}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted({**sources, "__main__.py": entry}.items()):
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)


def _new_record(
    job: RerunJob, settings: LauncherSettings, handle: JobHandle, bundle_id: str, nonce: str
) -> JobRecord:
    now = datetime.now(UTC)
    waiting_s = settings.queue_timeout_s if isinstance(settings, SlurmSettings) else 0.0
    return JobRecord(
        job_id=job.job_id,
        bundle_id=bundle_id,
        nonce=nonce,
        gpu=job.gpu,
        deadline_s=job.deadline_s,
        deadline_at=now + timedelta(seconds=waiting_s + job.deadline_s),
        launcher=settings,
        handle=handle,
        prepared_at=now,
        status=JobStatus(state=JobState.QUEUED, detail="prepared"),
        history=(Transition(at=now, event="prepared"),),
    )


def _fill(staged: Path, job: RerunJob, settings: LauncherSettings, record: JobRecord) -> None:
    """Put everything a run needs into the staged directory."""
    shutil.copytree(job.bundle_dir, staged / run_directory.BUNDLE)
    worker = staged / settings.worker_file.name
    shutil.copyfile(settings.worker_file, worker)
    build_supervisor(staged / SUPERVISOR)
    arguments = [settings.python, worker.name, "run", run_directory.BUNDLE]
    arguments += ["--out", run_directory.RESULT, "--deadline-s", f"{job.deadline_s:g}"]
    gpu = "0" if settings.kind == "slurm" and job.gpu != "cpu" else job.gpu
    arguments += ["--gpu", gpu] if gpu is not None else []
    arguments += ["--lock-dir", settings.lock_dir] if settings.lock_dir is not None else []
    run_directory.Command(
        arguments=arguments,
        environment=settings.environment,
        pass_environment=list(settings.pass_environment),
        deadline_s=job.deadline_s,
        stop=run_directory.StopLadder(**settings.stop.model_dump()),
        bundle_id=record.bundle_id,
        nonce=record.nonce,
    ).write(staged)
    run_directory.write_json(staged / RECORD, record.model_dump(mode="json"))


def _read_bundle(bundle_dir: Path) -> tuple[str, str]:
    try:
        content = run_directory.read_json(bundle_dir / "bundle.json")
    except ValueError as error:
        raise BundleError(f"{bundle_dir / 'bundle.json'}: {error}") from error
    if content is None:
        raise BundleError(f"{bundle_dir}: no bundle.json; make the bundle first")
    links = [path for path in bundle_dir.rglob("*") if path.is_symlink()]
    if links:
        raise BundleError(f"{links[0]}: a bundle holds no links; replace it by the file")
    try:
        return str(content["bundle_id"]), str(content["nonce"])
    except KeyError as error:
        raise BundleError(f"{bundle_dir / 'bundle.json'}: {error.args[0]} is missing") from error


_thread = threading.local()


def _held_locks() -> dict[Path, int]:
    if not hasattr(_thread, "held"):
        _thread.held = {}
    held: dict[Path, int] = _thread.held
    return held
