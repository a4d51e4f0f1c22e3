"""Start the server's programs, watch them and stop them.

Three programs: Dagster's code server, which also runs what is launched; its daemon; the guarded web
server. Each is the head of a process group of its own, so that a Ctrl-C in the terminal reaches
this process alone, which then stops them in order. Each holds the lock of DAGSTER_HOME with this
process, so that no second server starts while any of them lives, and ends when this process is
gone (`child.py`).
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import FrameType

_START_S = 120.0
_STOP_S = 60.0
_LOOK_S = 0.2
_LONG_PATH = 60
_TIDY_EVERY = timedelta(days=1)
_CODE_SERVER = "code server"
# Also the name of the code location: what people switched on or off is kept under it.
_LOCATION = "pipelines.definitions"


class ServerError(Exception):
    """A program of the server ended by itself; the message names it."""


@dataclass
class Stop:
    """Whether somebody asked to stop, by signal."""

    asked: int = 0

    def receive(self, _number: int, _frame: FrameType | None) -> None:
        """A signal came; the second one does not wait any longer."""
        self.asked += 1


@contextmanager
def stop_by_signal() -> Iterator[Stop]:
    """INT, TERM and HUP ask to stop, even where whoever started this ignores them.

    A script's `dev &` ignores INT, and its children would; nohup's wish to outlive the terminal is
    kept.
    """
    stop = Stop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = [(number, signal.signal(number, stop.receive)) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@dataclass
class Programs:
    """The programs that run, by name, in the order in which they were started."""

    lock: int
    alive: int
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str, module: str, *arguments: str, also: Sequence[int] = ()) -> None:
        """Start a module as a program that holds the lock and ends with this process."""
        self.running[name] = subprocess.Popen(
            [sys.executable, "-m", "pipelines.server.child", str(self.alive), module, *arguments],
            pass_fds=[self.alive, self.lock, *also],
            start_new_session=True,
        )

    def ended(self) -> str | None:
        """A program that ended by itself, with its exit code in words."""
        for name, process in self.running.items():
            code = process.poll()
            if code is not None:
                return f"the {name} ended by itself ({_in_words(code)})"
        return None

    def stop(self, stop: Stop) -> None:
        """Interrupt all, and kill what does not end; the code server last, which has the runs."""
        first = [process for name, process in self.running.items() if name != _CODE_SERVER]
        _end(first, stop)
        _end(list(self.running.values()), stop)


def run(host: str, sockets: Sequence[socket.socket], lock: int, stop: Stop) -> None:
    """Serve until a signal asks to stop.

    Raises:
        ServerError: one of the programs ended by itself; the others were stopped.
    """
    reading, writing = os.pipe()
    programs = Programs(lock, reading)
    with tempfile.TemporaryDirectory(prefix="kernelindex-", dir=_short_folder()) as folder:
        try:
            _start(programs, Path(folder), host, sockets, stop)
            _watch(programs, stop)
        finally:
            programs.stop(stop)
            os.close(writing)
            os.close(reading)


def _start(
    programs: Programs, folder: Path, host: str, sockets: Sequence[socket.socket], stop: Stop
) -> None:
    code = folder / "code.sock"
    workspace = folder / "workspace.yaml"
    entry = {"grpc_server": {"location_name": _LOCATION, "socket": str(code)}}
    # Dagster reads YAML, and JSON is YAML.
    workspace.write_text(json.dumps({"load_from": [entry]}))
    programs.start(
        _CODE_SERVER, "dagster", "code-server", "start", "--socket", str(code),
        "-m", _LOCATION, "--location-name", _LOCATION,
        "--inject-env-vars-from-instance", "--log-level", "warning",
    )  # fmt: skip
    _await(code, programs, stop)
    if stop.asked:
        return
    numbers = [one.fileno() for one in sockets]
    programs.start(
        "web server", "pipelines.server.webserver", "--host", host, "--workspace", str(workspace),
        *(part for number in numbers for part in ("--socket", str(number))), also=numbers,
    )  # fmt: skip
    for one in sockets:
        one.close()
    programs.start("daemon", "dagster._daemon", "run", "--workspace", str(workspace))


def _short_folder() -> str | None:
    """Where a socket's path stays within the hundred bytes that systems allow."""
    return None if len(tempfile.gettempdir()) < _LONG_PATH else "/tmp"


def _await(code: Path, programs: Programs, stop: Stop) -> None:
    """Wait until the code server answers."""
    end = time.monotonic() + _START_S
    while not stop.asked:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(code))
            return
        _raise_where_ended(programs)
        if time.monotonic() > end:
            raise ServerError(f"the {_CODE_SERVER} did not start within {_START_S:.0f} s")
        time.sleep(_LOOK_S)


def _watch(programs: Programs, stop: Stop) -> None:
    tidying: subprocess.Popen[bytes] | None = None
    next_at = time.monotonic()
    while not stop.asked:
        _raise_where_ended(programs)
        if time.monotonic() >= next_at and (tidying is None or tidying.poll() is not None):
            next_at = time.monotonic() + _TIDY_EVERY.total_seconds()
            # A process of its own: Dagster is loaded for it, and then forgotten.
            command = [sys.executable, "-m", "pipelines.history"]
            tidying = subprocess.Popen(command, start_new_session=True)
        time.sleep(_LOOK_S)
    if tidying is not None:
        tidying.terminate()
        tidying.wait()


def _raise_where_ended(programs: Programs) -> None:
    ended = programs.ended()
    if ended is not None:
        raise ServerError(f"{ended}; see its last lines above")


def _end(processes: Sequence["subprocess.Popen[bytes]"], stop: Stop) -> None:
    """Interrupt these with all that they started, wait for them, and kill the rest."""
    for process in filter(_lives, processes):
        os.killpg(process.pid, signal.SIGINT)
    end = time.monotonic() + _STOP_S
    while any(map(_lives, processes)) and stop.asked < 2 and time.monotonic() < end:
        time.sleep(_LOOK_S)
    for process in filter(_lives, processes):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lives(process: "subprocess.Popen[bytes]") -> bool:
    """Whether the program or anything of its process group is there still."""
    if process.poll() is None:
        return True
    # Orphans of the group are ours to bury where this is a container's first process.
    with suppress(ChildProcessError):
        os.waitpid(-process.pid, os.WNOHANG)
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _in_words(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
