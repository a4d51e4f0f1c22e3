"""Whether the process of a run is alive: a lock that ends with it, whatever ends it.

Dagster's history says what a run last reported. A run whose process was killed says STARTED for
ever, and holds the pool's slot against all that come after it. So each run's process holds the lock
of a file under DAGSTER_HOME; where that lock is free and the run is unfinished, its process died,
and whoever wants the slot next ends the run by name. A run without such a file is left alone.
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg

_FOLDER = "alive"
_SUFFIX = ".lock"


@contextmanager
def alive(home: Path, run_id: str, name: str) -> Iterator[None]:
    """Hold the lock of a run in this process; `name` says what it is, should it die.

    Where an error or an interrupt ends the block, the lock's file stays: what the run has not said
    of its own end, `end_dead_runs` says.
    """
    descriptor = hold(home, run_id, name)
    try:
        yield
        (home / _FOLDER / f"{run_id}{_SUFFIX}").unlink(missing_ok=True)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def hold(home: Path, run_id: str, name: str) -> int | None:
    """Take the lock of a run until this process ends or closes the descriptor.

    None where another part of this run has it, as a command that runs the job in its own process.
    """
    path = home / _FOLDER / f"{run_id}{_SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file takes its name when it is locked: whoever finds one that is not may end the run.
    unnamed = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        named = f"{name}, process {os.getpid()} on {socket.gethostname()},"
        os.write(descriptor, named.encode())
        path.hardlink_to(unnamed)
    except FileExistsError:
        os.close(descriptor)
        return None
    finally:
        unnamed.unlink()
    return descriptor


def end_dead_runs(instance: dg.DagsterInstance, home: Path) -> list[str]:
    """End every unfinished run whose process is dead; the ids of those that were ended."""
    return [
        path.stem
        for path in sorted((home / _FOLDER).glob(f"*{_SUFFIX}"))
        if _end_if_dead(instance, path)
    ]


def _end_if_dead(instance: dg.DagsterInstance, path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if not (_lock(descriptor) and _is(descriptor, path)):
            return False
        # Read under the lock: nobody else ends this run, and its own process no longer can.
        run = instance.get_run_by_id(path.stem)
        unfinished = run is not None and not run.is_finished
        if run is not None and unfinished:
            _end(instance, run, os.pread(descriptor, 500, 0).decode(errors="replace"))
        path.unlink(missing_ok=True)
        return unfinished
    finally:
        os.close(descriptor)


def _end(instance: dg.DagsterInstance, run: dg.DagsterRun, name: str) -> None:
    message = (
        f"{name or 'The process of this run'} died without ending this run; its lock was free. "
        "The run was ended so that others need not wait for it. What it had published stays; "
        "launch it again for the rest."
    )
    if run.status == dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, message)
    else:
        instance.report_run_failed(run, message)


def _lock(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _is(descriptor: int, path: Path) -> bool:
    """Whether the path still names the file that is open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
