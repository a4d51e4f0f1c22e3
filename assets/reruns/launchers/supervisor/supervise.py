"""Run one worker, hold its deadline, stop its whole tree, and write down how it ended.

The supervisor is a child subreaper: whatever the worker starts, with a session of its own or
not, stays findable below it. When the supervisor itself is killed, the kernel kills the worker.
"""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from . import processes, run_directory
from .run_directory import Command, RunLock

ALREADY_STARTED = 75
"""Exit code when the run was started before, or is running now (EX_TEMPFAIL of sysexits.h)."""
CANCELLED = 143

PARENT_DIED = signal.SIGUSR2
_WATCHED = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, PARENT_DIED}
_TICK_S = 0.25
"""How often the request to cancel is looked for when no signal arrives."""


@dataclass(frozen=True)
class Ending:
    """How a worker ended.

    exit_code: as the shell counts, 128 + signal number for a killed worker; None when it never
    started. reason: `exited` by itself, or why it was stopped: the reason of a request,
    `deadline`, `signalled` (someone signalled the supervisor), `parent_died` (the job step
    above it ended).
    """

    exit_code: int | None
    reason: str
    detail: str
    ended_at_s: float


def supervise(
    directory: Path,
    *,
    repeat: bool,
    on_started: Callable[[str], None] = lambda _: None,
) -> int:
    """Run the worker of a run directory once and return its exit code.

    With `repeat`, a run that was started before and ended without a result is started again
    (a batch system that requeues a job after a node failure); otherwise it is refused.
    `on_started` hears `started`, or why not: `running`, `ended`, `cancelled`.
    """
    directory = directory.resolve()
    command = Command.read(directory)
    lock = RunLock(directory)
    stop_s = command.stop.interrupt_grace_s + command.stop.terminate_grace_s
    # A requeued attempt may meet the end of the one before it; any other only somebody who looks
    # whether the lock is held.
    if not lock.acquire(timeout_s=stop_s + 5.0 if repeat else 1.0):
        on_started("running")
        return ALREADY_STARTED
    try:
        if run_directory.result_state(directory, command.bundle_id, command.nonce) == "complete":
            on_started("ended")
            return 0
        asked = run_directory.cancel_reason(directory)
        if asked is not None:
            _write_exit(directory, Ending(None, asked, "stopped before its start", time.time()))
            on_started("cancelled")
            return CANCELLED
        if (directory / run_directory.PROCESS).exists() and not repeat:
            on_started("ended")
            return ALREADY_STARTED
        processes.kill_marked(directory)  # left by an attempt whose supervisor was killed
        (directory / run_directory.EXIT).unlink(missing_ok=True)
        _write_process(directory)
        ending = _Supervision(directory, command).run(on_started)
        _write_exit(directory, ending)
        return CANCELLED if ending.exit_code is None else ending.exit_code
    finally:
        lock.release()


def start_detached(directory: Path) -> str:
    """Start a supervisor in a session of its own and return what `supervise` said on starting."""
    Command.read(directory)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _run_detached(directory, write_end)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as pipe:
        said = pipe.read().decode()
    return said or "failed"


def request_cancel(directory: Path, reason: str) -> None:
    """Ask the run to stop; a run that was not started yet will not start any more."""
    marker = directory / run_directory.CANCEL
    if not marker.exists():
        run_directory.write_json(marker, {"reason": reason, "requested_at_s": time.time()})
    process = run_directory.read_json(directory / run_directory.PROCESS)
    if process is None:
        return
    supervisor = processes.ProcessIdentity(
        process["pid"], process["start_ticks"], process["boot_id"]
    )
    if processes.is_alive(supervisor):
        processes.signal_all([supervisor.pid], signal.SIGTERM)


def cancel(directory: Path, reason: str) -> list[int]:
    """Stop the run and wait until nothing of it lives; return pids that had to be swept up.

    Takes at most the two graces of the stop ladder and a few seconds.
    """
    directory = directory.resolve()
    command = Command.read(directory)
    request_cancel(directory, reason)
    limit_s = command.stop.interrupt_grace_s + command.stop.terminate_grace_s + 5.0
    give_up_at = time.monotonic() + limit_s
    while run_directory.lock_is_held(directory) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    return processes.kill_marked(directory)


class _Supervision:
    """One worker from start to end."""

    def __init__(self, directory: Path, command: Command) -> None:
        self._directory = directory
        self._command = command
        self._parent_pid = os.getppid()
        self._reason = "exited"
        self._detail = ""
        self._step = 0
        self._next_step_at = time.monotonic() + command.deadline_s + command.stop.deadline_slack_s

    def run(self, on_started: Callable[[str], None]) -> Ending:
        processes.become_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        try:
            worker = self._start_worker()
        except OSError as error:
            on_started("started")
            detail = f"the worker could not be started: {error}"
            return Ending(127, "exited", detail, time.time())
        on_started("started")
        worker_status: int | None = None
        while worker_status is None:
            self._wait_for_something()
            worker_status = _reap(worker.pid)
        self._sweep()
        return Ending(_exit_code(worker_status), self._reason, self._detail, time.time())

    def _start_worker(self) -> subprocess.Popen[bytes]:
        with (self._directory / run_directory.LOG).open("ab") as log:
            return subprocess.Popen(
                self._command.arguments,
                cwd=self._directory,
                env=_worker_environment(self._command, self._directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=functools.partial(_prepare_worker, os.getpid()),
            )

    def _wait_for_something(self) -> None:
        """Wait for a signal, a request to cancel or the next step of the ladder; act on it."""
        now = time.monotonic()
        received = signal.sigtimedwait(_WATCHED, max(0.0, min(_TICK_S, self._next_step_at - now)))
        number = received.si_signo if received is not None else None
        if self._step == 0:
            asked = run_directory.cancel_reason(self._directory)
            if asked is not None:
                self._begin_stopping(asked, "stopped on request")
            elif number in (signal.SIGINT, signal.SIGTERM):
                self._begin_stopping("signalled", f"stopped by {signal.Signals(number).name}")
            elif number == PARENT_DIED and os.getppid() != self._parent_pid:
                # The kernel signals also when only the thread of the parent that forked ended.
                self._begin_stopping("parent_died", "the job step above the supervisor ended")
            elif time.monotonic() >= self._next_step_at:
                limit = f"{self._command.deadline_s:g} s"
                self._begin_stopping("deadline", f"still running past its deadline of {limit}")
        elif time.monotonic() >= self._next_step_at:
            self._climb()

    def _begin_stopping(self, reason: str, detail: str) -> None:
        self._reason, self._detail = reason, detail
        self._climb()

    def _climb(self) -> None:
        """Send the next signal of the ladder to the whole tree."""
        stop = self._command.stop
        number, grace_s = (
            (signal.SIGINT, stop.interrupt_grace_s),
            (signal.SIGTERM, stop.terminate_grace_s),
            (signal.SIGKILL, 0.1),
        )[min(self._step, 2)]
        self._step += 1
        self._next_step_at = time.monotonic() + grace_s
        processes.signal_all(processes.descendants(os.getpid()), number)

    def _sweep(self) -> None:
        """Kill what the worker left behind: the run ends with the worker."""
        while left := processes.descendants(os.getpid()):
            processes.signal_all(left, signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, 0.02)
            _reap(0)
        _reap(0)


def _prepare_worker(supervisor_pid: int) -> None:
    """Tie the worker to its supervisor; runs in the child before the worker's program."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    processes.signal_when_parent_dies(signal.SIGKILL)
    if os.getppid() != supervisor_pid:  # it died before the kernel was asked
        os._exit(128 + signal.SIGKILL)


def _reap(worker_pid: int) -> int | None:
    """Collect ended children; return the wait status of the worker if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == worker_pid:
            found = status


def _exit_code(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def _worker_environment(command: Command, directory: Path) -> dict[str, str]:
    """Build the worker's environment: only what is named, so that no token travels along."""
    exact = {name for name in command.pass_environment if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in command.pass_environment if name.endswith("*"))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in exact or (prefixes and name.startswith(prefixes))
    }
    return {**kept, **command.environment, processes.RUN_MARKER: str(directory)}


def _write_process(directory: Path) -> None:
    before = run_directory.read_json(directory / run_directory.PROCESS)
    identity = processes.identify(os.getpid())
    if identity is None:
        raise ProcessLookupError("this process is not in /proc; the supervisor needs Linux")
    run_directory.write_json(
        directory / run_directory.PROCESS,
        {
            **asdict(identity),
            "host": socket.gethostname(),
            "started_at_s": time.time(),
            "attempt": 1 if before is None else before["attempt"] + 1,
            "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
            "slurm_restarts": int(os.environ.get("SLURM_RESTART_COUNT", "0")),
        },
    )


def _write_exit(directory: Path, ending: Ending) -> None:
    run_directory.write_json(directory / run_directory.EXIT, asdict(ending))


def _run_detached(directory: Path, write_end: int) -> None:
    """Become a daemon and supervise; never returns."""
    code = 1
    try:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        errors = os.open(
            directory / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        for source, target in ((null, 0), (errors, 1), (errors, 2)):
            os.dup2(source, target)
        os.dup2(write_end, 3)
        os.closerange(4, 4096)

        def tell(said: str) -> None:
            os.write(3, said.encode())
            os.close(3)

        code = supervise(directory, repeat=False, on_started=tell)
    except BaseException:  # noqa: BLE001 - the last frame of a daemon: write it down and end
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
