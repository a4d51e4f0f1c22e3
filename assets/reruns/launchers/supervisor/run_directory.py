"""The files of one run and what they say together.

A run directory holds `command.json` (what to run), `bundle/`, the worker, `run.lock` (held
while the supervisor lives), `process.json` (written before the worker starts), `cancel.json`
(a request to stop), `log` (everything the worker printed), `result/` (appears by one rename)
and `exit.json` (how it ended). Nothing here starts or stops a process.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import processes

COMMAND = "command.json"
PROCESS = "process.json"
CANCEL = "cancel.json"
EXIT = "exit.json"
LOCK = "run.lock"
LOG = "log"
BUNDLE = "bundle"
RESULT = "result"
LOG_CHUNK_BYTES = 1 << 20
"""Most that is handed over of a log at once."""


@dataclass(frozen=True)
class StopLadder:
    """How long each step of stopping a worker may take, in seconds."""

    deadline_slack_s: float
    interrupt_grace_s: float
    terminate_grace_s: float


@dataclass(frozen=True)
class Command:
    """What a supervisor runs, and what a right result says of itself."""

    arguments: list[str]
    environment: dict[str, str]
    pass_environment: list[str]
    deadline_s: float
    stop: StopLadder
    bundle_id: str
    nonce: str

    @classmethod
    def read(cls, run_directory: Path) -> Command:
        """Read `command.json`."""
        content = read_json(run_directory / COMMAND)
        if content is None:
            raise FileNotFoundError(f"{run_directory / COMMAND}: there is no job in this directory")
        stop = StopLadder(**content.pop("stop"))
        return cls(stop=stop, **content)

    def write(self, run_directory: Path) -> None:
        """Write `command.json` atomically."""
        write_json(run_directory / COMMAND, asdict(self))


@dataclass(frozen=True)
class Evidence:
    """What the files of a run and the processes of this machine say about it.

    phase: `absent` (no such directory), `prepared` (never started), `running` (the supervisor
    lives) or `ended`. result: `none`, `complete` or `foreign` (of another bundle or nonce).
    exit: content of `exit.json`. running_s: seconds since the supervisor started, on this
    machine's clock. cancel_reason: why it was asked to stop, if it was. unsupervised_pids:
    living processes of a run whose supervisor is gone.
    """

    phase: str
    result: str
    cancel_reason: str | None
    exit: dict[str, Any] | None
    process: dict[str, Any] | None
    running_s: float | None
    unsupervised_pids: list[int]
    log_size_bytes: int


ABSENT = Evidence("absent", "none", None, None, None, None, [], 0)


class RunLock:
    """The exclusive lock of a run directory; the kernel frees it when its holder dies."""

    def __init__(self, run_directory: Path) -> None:
        self._path = run_directory / LOCK
        self._descriptor: int | None = None

    def acquire(self, timeout_s: float = 0.0) -> bool:
        """Try to take the lock for up to `timeout_s`; say whether it is now held."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        give_up_at = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    os.close(descriptor)
                    return False
                time.sleep(0.05)
            else:
                self._descriptor = descriptor
                return True

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None


def lock_is_held(run_directory: Path) -> bool:
    """Say whether a supervisor of this run lives, without taking part in the queue for it.

    A shared lock is tried, so that two who look at once do not take each other for a supervisor.
    """
    try:
        descriptor = os.open(run_directory / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def result_state(run_directory: Path, bundle_id: str, nonce: str) -> str:
    """Return `complete`, `foreign` (another bundle's or nonce's) or `none`."""
    try:
        content = read_json(run_directory / RESULT / "result.json")
    except ValueError:
        return "foreign"
    if content is None:
        return "none"
    same = content.get("bundle_id") == bundle_id and content.get("nonce") == nonce
    return "complete" if same else "foreign"


def gather(run_directory: Path) -> Evidence:
    """Collect the evidence about one run; changes nothing."""
    if not (run_directory / COMMAND).exists():
        return ABSENT
    command = Command.read(run_directory)
    # The lock is asked first: a supervisor writes exit.json before it lets go of the lock.
    running = lock_is_held(run_directory)
    process = read_json(run_directory / PROCESS)
    ended = read_json(run_directory / EXIT)
    if running:
        phase = "running"
    elif process is None and ended is None:
        phase = "prepared"
    else:
        phase = "ended"
    started_at_s = process.get("started_at_s") if process else None
    return Evidence(
        phase=phase,
        result=result_state(run_directory, command.bundle_id, command.nonce),
        cancel_reason=cancel_reason(run_directory),
        exit=ended,
        process=process,
        running_s=None if started_at_s is None else max(0.0, time.time() - started_at_s),
        unsupervised_pids=[] if running else processes.marked(run_directory),
        log_size_bytes=_size(run_directory / LOG),
    )


def cancel_reason(run_directory: Path) -> str | None:
    """Return why the run was asked to stop; None when it was not."""
    request = read_json(run_directory / CANCEL)
    return None if request is None else str(request["reason"])


def read_log(run_directory: Path, offset: int, limit_bytes: int = LOG_CHUNK_BYTES) -> bytes:
    """Return up to `limit_bytes` of what the worker printed, from `offset` on."""
    try:
        with (run_directory / LOG).open("rb") as log:
            log.seek(offset)
            return log.read(limit_bytes)
    except FileNotFoundError:
        return b""


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file that is read whole or not at all, also after a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; None when the file is not there."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(content).__name__}")  # noqa: TRY004 - a file
    return content


def sync_directory(path: Path) -> None:
    """Make renames inside a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
