"""Settings of each launcher, and the one choice among them.

Only types and their checks; whether a machine really answers is asked by `Launcher.check`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

LauncherKind = Literal["local", "ssh", "slurm"]

PASSED_ENVIRONMENT = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_*",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "XDG_CACHE_HOME",
    "CUDA_*",
    "NVIDIA_*",
    "SLURM_*",
    "TORCH_*",
    "TRITON_*",
)
"""Variables a worker may see; anything else, tokens above all, stays behind."""


class LauncherNotConfiguredError(Exception):
    """The chosen launcher lacks settings, or what the settings name is not there."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StopPolicy(_Settings):
    """How a worker is stopped: INT, then TERM, then KILL to its whole process tree."""

    deadline_slack_s: float = Field(
        default=10.0,
        ge=0,
        description="After its deadline the worker may end by itself for this long.",
    )
    interrupt_grace_s: float = Field(default=5.0, ge=0, description="From SIGINT to SIGTERM.")
    terminate_grace_s: float = Field(default=3.0, ge=0, description="From SIGTERM to SIGKILL.")

    @property
    def total_s(self) -> float:
        """Longest time from the deadline until the last process is gone."""
        return self.deadline_slack_s + self.interrupt_grace_s + self.terminate_grace_s


class _WorkerSettings(_Settings):
    worker_file: Path = Field(description="The self-contained worker; it is copied into each job.")
    python: str = Field(
        default="python3",
        description="Interpreter (>= 3.10, with torch) on the machine with the GPU.",
    )
    lock_dir: str | None = Field(
        default=None,
        description="Where the worker keeps its lock per GPU; the worker's own when empty.",
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Variables set for the worker."
    )
    pass_environment: tuple[str, ...] = Field(
        default=PASSED_ENVIRONMENT,
        description="Variables the worker may inherit; a name ending in * is a prefix.",
    )
    stop: StopPolicy = StopPolicy()
    poll_interval_s: float = Field(
        default=2.0, gt=0, description="How often a running job is looked at."
    )


class LocalSettings(_WorkerSettings):
    """Run the worker on this machine, with another interpreter."""

    kind: Literal["local"] = "local"
    poll_interval_s: float = Field(
        default=0.5, gt=0, description="How often a running job is looked at."
    )


class SshSettings(_WorkerSettings):
    """Run the worker on a machine that the OpenSSH client reaches without a password."""

    kind: Literal["ssh"] = "ssh"
    host: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:%-]*$")
    port: int | None = Field(default=None, ge=1, le=65535)
    user: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")
    identity_file: Path | None = None
    known_hosts_file: Path | None = None
    config_file: Path | None = Field(
        default=None, description="Another ssh_config than the user's own."
    )
    remote_root: str = Field(
        default=".kernelindex/jobs",
        pattern=r"^[A-Za-z0-9._/+-]+$",
        description="Folder for jobs on that machine; relative to the login's home.",
    )
    connect_timeout_s: int = Field(default=10, ge=1)
    command_timeout_s: float = Field(
        default=600.0,
        gt=0,
        description="Longest time for one exchange, a copy of a bundle included.",
    )
    share_connection: bool = Field(
        default=True,
        description="One connection for all calls (ControlMaster) where it can be had.",
    )
    keep_remote: bool = Field(
        default=False, description="Leave the job's folder there after collecting."
    )
    result_limit_bytes: int = Field(default=4 << 30, gt=0)


class SlurmSettings(_WorkerSettings):
    """Run the worker as a Slurm job; the jobs' folder must be on a file system nodes share."""

    kind: Literal["slurm"] = "slurm"
    partition: str | None = None
    account: str | None = None
    gres: str | None = Field(
        default="gpu:1", description="What one job asks for; one GPU, as a rule."
    )
    extra_arguments: tuple[str, ...] = Field(
        default=(), description="Further sbatch arguments, such as --qos=… or --constraint=…."
    )
    queue_timeout_s: float = Field(
        default=24 * 3600.0, gt=0, description="A job that waits longer for a node is cancelled."
    )
    config_file: Path | None = Field(
        default=None, description="slurm.conf, where it is not the default."
    )
    command_timeout_s: float = Field(
        default=60.0, gt=0, description="Longest time for one Slurm command."
    )


LauncherSettings = Annotated[
    LocalSettings | SshSettings | SlurmSettings, Field(discriminator="kind")
]


class LaunchersSettings(_Settings):
    """All launchers that are configured; `selected` is the one that is used."""

    selected: LauncherKind = "local"
    local: LocalSettings | None = None
    ssh: SshSettings | None = None
    slurm: SlurmSettings | None = None

    def chosen(self, kind: LauncherKind | None = None) -> LauncherSettings:
        """Return the settings of `kind`, or of the selected launcher.

        Raises LauncherNotConfiguredError when there are none, naming what to set.
        """
        wanted = kind or self.selected
        by_kind: dict[LauncherKind, LocalSettings | SshSettings | SlurmSettings | None] = {
            "local": self.local,
            "ssh": self.ssh,
            "slurm": self.slurm,
        }
        settings = by_kind[wanted]
        if settings is None:
            configured = sorted(name for name, value in by_kind.items() if value is not None)
            needed = {"local": "worker_file and python", "ssh": "worker_file and host"}.get(
                wanted, "worker_file"
            )
            raise LauncherNotConfiguredError(
                f"the launcher {wanted!r} is not configured: give it at least {needed} "
                f"(docs/launchers.md), or choose one of: {', '.join(configured) or 'none'}"
            )
        return settings
