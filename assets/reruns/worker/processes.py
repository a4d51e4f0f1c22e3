"""The supervisor's side of child processes: start, ask, time from outside, kill for certain.

Asking is one JSON line there and one back, with a token that the answer must repeat. Every wait
looks at the deadline, at cancellation and at the child's memory. Pure standard library.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import isolation

_POLL_S = 0.1
_MAX_ANSWER_BYTES = 8 * 1024 * 1024
_START_TIMEOUT_S = 300.0


class ChildFailed(Exception):  # noqa: N818 - the base of what can go wrong with a child
    """A request to a child process was not answered as it should be."""


class ChildDied(ChildFailed):
    """The process ended, or closed its channel, before it answered."""


class ChildTimedOut(ChildFailed):
    """The answer did not come in time; the process was killed."""


class ChildTooLarge(ChildFailed):
    """The process used more host memory than allowed; it was killed."""


class ChildTampered(ChildFailed):
    """What came over the channel is no answer to what was asked."""


class ChildRefused(ChildFailed):
    """The child answered that the request failed.

    `kind` is one of its own words (a reason code of `codes.REASONS`), `detail` the traceback.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class Stopped(Exception):  # noqa: N818
    """The worker was told to stop, or its deadline came. `signal_number` is 0 for a deadline."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by signal {signal_number}" if signal_number else "deadline")
        self.signal_number = signal_number


@dataclass
class Stop:
    """Why and when to stop: set by signal handlers, checked in every wait."""

    deadline: float
    signal_number: int = 0

    def check(self) -> None:
        """Raise `Stopped` when it is time."""
        if self.signal_number:
            raise Stopped(self.signal_number)
        if time.monotonic() >= self.deadline:
            raise Stopped(0)


@dataclass(frozen=True)
class Answer:
    """A child's answer and how long it took by the supervisor's own clock, in ns."""

    values: dict[str, Any]
    outside_ns: int


class Child:
    """One forked process and the channel to it."""

    def __init__(self, pid: int, channel: socket.socket, stop: Stop, memory: int | None) -> None:
        self.pid = pid
        self._channel = channel
        self._stop = stop
        self._memory_bytes = memory
        self._buffer = b""
        self._token = ""
        self._sent_ns = 0
        self.closed = False

    def ask(self, command: str, timeout_s: float, **values: Any) -> Answer:
        """Send one request and wait for its answer.

        Raises `ChildDied`, `ChildTimedOut`, `ChildTooLarge`, `ChildTampered`, `ChildRefused`
        or `Stopped`.
        """
        self.send(command, **values)
        return self.receive(timeout_s)

    def send(self, command: str, **values: Any) -> None:
        """Send a request without waiting; `receive` must follow before the next one."""
        self._stop.check()
        if self._buffer:
            raise ChildTampered("bytes arrived that nobody asked for")
        self._token = secrets.token_hex(16)
        request = json.dumps({"do": command, "token": self._token, **values}).encode("utf-8")
        self._sent_ns = time.perf_counter_ns()
        try:
            self._channel.sendall(request + b"\n")
        except OSError as error:
            raise self._died(str(error)) from error

    def receive(self, timeout_s: float) -> Answer:
        """The answer to the request that was sent last; raises as `ask` does."""
        line = self._read_line(timeout_s)
        outside_ns = time.perf_counter_ns() - self._sent_ns
        answer = _parse_answer(line)
        if answer.get("token") != self._token:
            raise ChildTampered("an answer does not repeat its request's token")
        if not answer.get("ok"):
            raise ChildRefused(str(answer.get("kind", "RAISED")), str(answer.get("detail", "")))
        return Answer(answer, outside_ns)

    def pause(self) -> None:
        """Stop the process group while others are measured, background threads included."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process group run again."""
        self._signal(signal.SIGCONT)

    def _read_line(self, timeout_s: float) -> bytes:
        end = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            self._stop.check()
            ready, _, _ = select.select([self._channel], [], [], _POLL_S)
            if ready:
                try:
                    piece = self._channel.recv(1 << 16)
                except OSError as error:
                    raise self._died(str(error)) from error
                if not piece:
                    raise self._died("the process closed its channel")
                self._buffer += piece
                if len(self._buffer) > _MAX_ANSWER_BYTES:
                    raise ChildTampered("an answer is larger than any real one")
                continue
            if time.monotonic() > end:
                self.kill()
                raise ChildTimedOut(f"no answer within {timeout_s:.1f} s")
            if self._memory_bytes and isolation.resident_bytes(self.pid) > self._memory_bytes:
                self.kill()
                raise ChildTooLarge(f"more than {self._memory_bytes} bytes resident")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _died(self, detail: str) -> ChildDied:
        """The error to raise; raises `Stopped` instead where the worker was stopped meanwhile.

        Who stops the worker signals its children too, and they may be gone before it knows.
        """
        time.sleep(_POLL_S)
        self._stop.check()
        return ChildDied(detail)

    def kill(self) -> None:
        """Kill the process and everything in its group; harmless when it is gone."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Kill, and drop the channel; the process id is not used again."""
        self.kill()
        self._channel.close()
        self.closed = True

    def _signal(self, number: signal.Signals) -> None:
        # A child that ended stays a zombie until it is released, so the id is still its own.
        if not self.closed:
            for function in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    function(self.pid, number)


def _parse_answer(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError as error:
        raise ChildTampered("an answer is not JSON") from error
    if not isinstance(answer, dict):
        raise ChildTampered("an answer is not an object")
    return answer


class Nursery:
    """The running nursery process; `start` forks a child from it."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        stop: Stop,
        sandbox: Sequence[str] = (),
    ) -> None:
        """Start the nursery and wait until it has imported torch; raises `ChildFailed`.

        `sandbox` is a command that runs the nursery, and so every child, confined.
        """
        self._stop = stop
        self._children: list[Child] = []
        ours, theirs = socket.socketpair()
        package = __package__ or ""
        root = str(Path(__file__).parents[len(package.split("."))])
        parent = 0 if sandbox else os.getpid()
        bootstrap = (
            f"import sys; sys.path.insert(0, {root!r}); from {package}.nursery import main; "
            f"sys.path.remove({root!r}); main({theirs.fileno()}, {parent})"
        )
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*sandbox, sys.executable, "-c", bootstrap],
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        theirs.close()
        self._socket = ours
        self._log = log
        self._receive(lambda line: line == b"ready")

    def start(self, log: Path, settings: Mapping[str, Any], memory: int | None = None) -> Child:
        """Fork one child that writes its output to `log`; raises `ChildFailed`."""
        ours, theirs = socket.socketpair()
        with log.open("ab") as output:
            released = [child.pid for child in self._children if child.closed]
            request = json.dumps({**settings, "released": released}).encode("utf-8")
            socket.send_fds(self._socket, [request], [theirs.fileno(), output.fileno()])
        theirs.close()
        child = Child(int(self._receive(bytes.isdigit)), ours, self._stop, memory)
        self._children = [known for known in self._children if not known.closed]
        self._children.append(child)
        return child

    def _receive(self, expected: Callable[[bytes], bool]) -> bytes:
        buffer, end = b"", time.monotonic() + _START_TIMEOUT_S
        while b"\n" not in buffer:
            self._stop.check()
            ready, _, _ = select.select([self._socket], [], [], _POLL_S)
            piece = self._socket.recv(256) if ready else b""
            if (ready and not piece) or time.monotonic() > end:
                tail = self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise ChildDied(f"the process that starts children failed: {tail.strip()}")
            buffer += piece
        line = buffer.strip()
        if not expected(line):
            raise ChildDied(f"the process that starts children answered {line!r}")
        return line

    def sweep(self) -> None:
        """Kill what ended children left running in sessions of their own."""
        known = {child.pid for child in self._children if not child.closed}
        known.add(self._process.pid)
        for pid, session in isolation.descendants().items():
            if session not in known:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill every child, the nursery, and whatever they left running in other sessions."""
        for child in self._children:
            child.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()
        for _ in range(50):
            left = isolation.descendants()
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            _reap_orphans()
            if not left:
                return
            time.sleep(0.02)


def _reap_orphans() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
