"""The page over which the measurer and a solution's process pass commands while the clock runs.

One page of shared memory: the measurer writes a command and its token, the process repeats the
token when it is done. The process may write whatever it likes into it; all it can do that way is
to answer, early or never. Pure standard library.
"""

import mmap
import os
import secrets
import time
from collections.abc import Callable

PAGE_BYTES = 4096

#: Commands: end of the play; a graph of a whole row; graphs of single calls, each behind a gate;
#: the same two with next to nothing in the graphs; one plain call on one entry, a tiny kernel, a
#: copy of one entry's outputs.
LEAVE, ROW, GATES, ROW_OF_NOTHING, GATES_OF_NOTHING, CALL, NOTHING, COPY = range(1, 9)

_COMMAND, _TOKEN, _ENTRY, _READY, _ARMED, _ANSWER, _FAILED = range(7)
#: Who waits looks again and again for this long, and naps between looks after that. Where cores
#: are few, spinning would take them from the one that is waited for.
_SPIN_NS = 50_000_000 if (os.cpu_count() or 1) >= 8 else 200_000
_NAP_S = 0.00005
_LOOK_NS = 50_000_000

_clock = time.perf_counter_ns
_sleep = time.sleep


class NoAnswer(Exception):  # noqa: N818
    """The process did not answer: `gone` when it is no longer there, else its time was up."""

    def __init__(self, gone: bool) -> None:
        super().__init__("the process ended" if gone else "the process did not answer in time")
        self.gone = gone


class SharedPage:
    """One page, mapped from a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, PAGE_BYTES)
        self.words = memoryview(self._memory).cast("Q")


class Conductor:
    """The measurer's end."""

    def __init__(self, page: SharedPage, alive: Callable[[], bool]) -> None:
        """`alive` says whether the process at the other end is still there."""
        self._words = page.words
        self._alive = alive
        self._token = 0

    def prepare(self, command: int, entry: int = 0) -> None:
        """Write all of a command but what starts it."""
        self._token = secrets.randbits(63) | 1
        self._words[_COMMAND] = command
        self._words[_ENTRY] = entry

    def start(self) -> None:
        """Start the prepared command."""
        self._words[_TOKEN] = self._token

    def wait(self, seconds: float) -> bool:
        """Wait for the answer; False where the process says that the command failed.

        Raises `NoAnswer`.
        """
        self._until(_ANSWER, self._token, seconds)
        return self._words[_FAILED] != self._token

    def wait_ready(self, seconds: float) -> None:
        """Wait until the process is back from the last command and looks for the next."""
        self._until(_READY, self._token, seconds)

    def wait_armed(self, seconds: float) -> bool:
        """Wait until all gated calls of a command are queued on the device; False as in `wait`."""
        self._until(_ARMED, self._token, seconds)
        return self._words[_FAILED] != self._token

    def check_alive(self) -> None:
        """Raise `NoAnswer` when the process is gone."""
        if not self._alive():
            raise NoAnswer(gone=True)

    def _until(self, word: int, value: int, seconds: float) -> None:
        words, began = self._words, _clock()
        look = began + _LOOK_NS
        while words[word] != value:
            now = _clock()
            if now - began > _SPIN_NS:
                _sleep(_NAP_S)
            if now > look:
                look = now + _LOOK_NS
                if now - began > seconds * 1e9:
                    raise NoAnswer(gone=False)
                if not self._alive():
                    raise NoAnswer(gone=True)


class Follower:
    """The end in the solution's process."""

    def __init__(self, page: SharedPage) -> None:
        self._words = page.words
        self._token = 0

    def next(self) -> tuple[int, int]:
        """Wait for the next command; returns it and its entry."""
        words, token = self._words, self._token
        words[_READY] = token
        began = _clock()
        while words[_TOKEN] == token:
            if _clock() - began > _SPIN_NS:
                _sleep(_NAP_S)
        self._token = words[_TOKEN]
        return int(words[_COMMAND]), int(words[_ENTRY])

    def armed(self) -> None:
        """Say that everything is queued on the device and waits there."""
        self._words[_ARMED] = self._token

    def answer(self) -> None:
        """Say that the command is done."""
        self._words[_ANSWER] = self._token

    def fail(self) -> None:
        """Say that the command cannot be done."""
        self._words[_FAILED] = self._token
        self._words[_ARMED] = self._token
        self._words[_ANSWER] = self._token
