"""What a rerun job is, where it stands, and the durable record of both.

Types only; `job_directory` keeps them on disk.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from assets.reruns.launchers.settings import LauncherSettings

JOB_ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"


StopReason = Literal["cancelled", "deadline", "queue_timeout"]
"""Why a launcher stops a job."""


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen to the job any more."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class FailureReason(StrEnum):
    """Why a job has no result; the worker's exit codes are part of its contract."""

    REFUSED_BUNDLE = "refused_bundle"
    INFRASTRUCTURE = "infrastructure"
    GPU_BUSY = "gpu_busy"
    DEADLINE = "deadline"
    QUEUE_TIMEOUT = "queue_timeout"
    WORKER_CRASHED = "worker_crashed"
    WORKER_KILLED = "worker_killed"
    NO_RESULT = "no_result"
    FOREIGN_RESULT = "foreign_result"
    BATCH_SYSTEM = "batch_system"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JobStatus(_Model):
    """A job's state as its launcher sees it now.

    `running_s` counts on the worker's machine; `log_size_bytes` is what the worker printed so
    far. Both are None where they are not known.
    """

    state: JobState
    detail: str = ""
    reason: FailureReason | None = None
    running_s: float | None = None
    log_size_bytes: int | None = None


class RerunJob(_Model):
    """A finished bundle that is to be measured.

    `gpu` is the worker's `--gpu`: an index, `cpu`, or None for the worker's own choice. Under
    Slurm the allocation decides, and only `cpu` is passed on.
    """

    job_id: str = Field(pattern=JOB_ID_PATTERN)
    bundle_dir: Path
    deadline_s: float = Field(gt=0, description="Longest run time of the worker.")
    gpu: str | None = Field(default=None, pattern=r"^(cpu|[0-9]+)$")


class LocalHandle(_Model):
    """A job on this machine; its run directory is the job directory."""

    kind: Literal["local"] = "local"
    job_id: str


class SshHandle(_Model):
    """A job on another machine: its run directory there and the supervisor that answers for it."""

    kind: Literal["ssh"] = "ssh"
    job_id: str
    run_directory: str
    supervisor: str


class SlurmHandle(_Model):
    """A Slurm job, found again by its name; `slurm_job_id` is None until Slurm gave one.

    A task of an array has the array's name and its own index.
    """

    kind: Literal["slurm"] = "slurm"
    job_id: str
    job_name: str
    array_index: int | None = None
    slurm_job_id: str | None = None


JobHandle = Annotated[LocalHandle | SshHandle | SlurmHandle, Field(discriminator="kind")]


class Transition(_Model):
    """One change of a job, for people and for `reconcile`."""

    at: AwareDatetime
    event: str
    detail: str = ""


class JobRecord(_Model):
    """`job.json`: all that another process needs to go on with a job.

    It is written before anything starts. The launcher's settings are kept with it, so that a
    change of settings does not orphan jobs that run under the old ones.
    """

    format_version: Literal[1] = 1
    job_id: str
    bundle_id: str
    nonce: str
    gpu: str | None
    deadline_s: float
    deadline_at: AwareDatetime
    launcher: LauncherSettings
    handle: JobHandle
    prepared_at: AwareDatetime
    submitted_at: AwareDatetime | None = None
    status: JobStatus
    collected_at: AwareDatetime | None = None
    history: tuple[Transition, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do: collected, or ended without a result."""
        if self.status.state is JobState.FINISHED:
            return self.collected_at is not None
        return self.status.state.is_final
