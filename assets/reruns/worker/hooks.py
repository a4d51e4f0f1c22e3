"""All that makes a Python process run code uncalled: hooks, handlers, timers and threads.

Import hooks and exit functions are not among it: libraries use them, and the harness imports
nothing after a solution was loaded. Pure standard library.
"""

import ctypes
import gc
import os
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .names import Identity, identity

#: How long nothing is asked of the solution while its threads are looked at.
QUIET_S = 0.03
#: A thread of a pool sleeps until it is given something; one that watches wakes again and again.
_WAKES = 4
_BUSY_SHARE = 0.2
_LOOKS = 10
#: Signals of crashes, which compilers and fault handlers catch, and those that glibc's threads use.
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT,
            signal.SIGSYS, 32, 33}  # fmt: skip
_ITIMERS = {"real": signal.ITIMER_REAL, "virtual": signal.ITIMER_VIRTUAL,
            "profiling": signal.ITIMER_PROF}  # fmt: skip
_AUDITED = ("sys.addaudithook",)

_sleep = time.sleep
_clock = time.perf_counter_ns
_gettrace, _getprofile = sys.gettrace, sys.getprofile
_get_signal, _get_timer = signal.getsignal, signal.getitimer
_current_frames = sys._current_frames
_read_link = os.readlink
_list_folder = os.listdir

_getframe = sys._getframe
_SIGACTION_BYTES = 256
_sigaction = ctypes.CDLL(None).sigaction
_INSTALLED = tuple({f"{sysconfig.get_path(kind)}/" for kind in ("purelib", "platlib")})

_audited: list[str] = []


def listen() -> None:
    """From now on notice audit hooks that are added: nothing can list them afterwards."""
    if not _listening:
        _listening.append(True)
        sys.addaudithook(_audit)
    _audited.clear()


def handlers() -> dict[str, Identity]:
    """Identity of every hook and handler that the interpreter or the kernel may call."""
    found: dict[str, Any] = {
        "sys.excepthook": sys.excepthook,
        "sys.unraisablehook": sys.unraisablehook,
        "threading.excepthook": threading.excepthook,
        "threading's trace function": getattr(threading, "_trace_hook", None),
        "threading's profile function": getattr(threading, "_profile_hook", None),
    }
    # None is a handler that was not set in Python; `caught_signals` and `foreign_handler` look at
    # those (readline, which numba loads, catches changes of the terminal's size).
    found.update({f"handler of signal {n}": _get_signal(n) or signal.SIG_DFL for n in _signals()})
    return {name: identity(value) for name, value in found.items()}


def active() -> list[str]:
    """Hooks that are in use, timers that run and functions that the collector calls."""
    found = [f"{name} set: {_called(hook())}" for name, hook in _TRACERS.items() if hook()]
    found += [f"frame traced in thread {n}" for n, f in _current_frames().items() if _traced(f)]
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        for tool in range(6):
            name = monitoring.get_tool(tool)
            if name is not None and monitoring.get_events(tool):
                found.append(f"sys.monitoring tool {name!r}")
    found += [f"audit hook added ({event})" for event in _audited]
    found += [f"{name} interval timer" for name, n in _ITIMERS.items() if any(_get_timer(n))]
    found += list(_kernel_timers())
    return found


def collector_callbacks() -> dict[str, Identity]:
    """Functions that the garbage collector calls."""
    return {f"gc callback {_called(function)}": (function,) for function in gc.callbacks}


def caught_signals() -> int:
    """The kernel's mask of signals with a handler, Python's or any other's, crashes left out."""
    for line in _text("/proc/self/status").splitlines():
        if line.startswith("SigCgt:"):
            mask = int(line.split()[1], 16)
            for number in _CRASHES:
                mask &= ~(1 << (int(number) - 1))
            return mask
    return 0


def foreign_handler(number: int) -> bool:
    """Whether a signal's handler is code of something else than an installed library.

    Compilers (LLVM in Triton) catch signals to clean up after themselves. Handlers set in Python
    are the interpreter's own code and not in a library.
    """
    action = ctypes.create_string_buffer(_SIGACTION_BYTES)
    if _sigaction(number, None, action):
        return True
    address = int.from_bytes(action.raw[:8], sys.byteorder)
    for line in _text("/proc/self/maps").splitlines():
        span, _, _, _, _, *path = line.split(maxsplit=5)
        start, _, end = span.partition("-")
        if int(start, 16) <= address < int(end, 16):
            return not (path and is_installed(path[0]))
    return True


def is_installed(path: str) -> bool:
    """Whether a file lies where packages are installed."""
    return path.startswith(_INSTALLED)


def restless_threads() -> list[str]:
    """Threads that run on their own while nothing is asked of the solution.

    A thread that waits for work is not among them, nor is one that is still winding down: some
    pools spin for 200 ms after their last work.
    """
    own = threading.get_native_id()
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    for look in range(_LOOKS):
        before, began = _run_times(), _clock()
        _sleep(QUIET_S)
        after, spent = _run_times(), _clock() - began
        found = []
        for thread, (run_ns, wakes) in after.items():
            if thread == own or thread not in before:
                continue
            ran, woke = run_ns - before[thread][0], wakes - before[thread][1]
            if woke >= _WAKES or ran > _BUSY_SHARE * spent:
                name = names.get(thread) or _text(f"/proc/self/task/{thread}/comm").strip()
                found.append(f"thread {name!r} ran {woke} times without being asked")
        if not found or look == _LOOKS - 1:
            return found
    return []


def _signals() -> list[int]:
    return [int(number) for number in signal.valid_signals()]


def _run_times() -> dict[int, tuple[int, int]]:
    """Nanoseconds on a processor and time slices of each thread of this process."""
    found = {}
    for name in _list_folder("/proc/self/task"):
        parts = _text(f"/proc/self/task/{name}/schedstat").split()
        if len(parts) == 3:
            found[int(name)] = (int(parts[0]), int(parts[2]))
    return found


def _kernel_timers() -> Iterator[str]:
    """POSIX timers and timer descriptors, which Python has no list of."""
    if _text("/proc/self/timers").strip():
        yield "POSIX timer"
    for name in _list_folder("/proc/self/fd"):
        try:
            target = _read_link(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if "timerfd" in target:
            yield "timer descriptor"


def _traced(frame: Any) -> bool:
    while frame is not None:
        if frame.f_trace is not None:
            return True
        frame = frame.f_back
    return False


def _called(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _AUDITED and not _by_a_library(_getframe(1)):
        _audited.append(event)


def _by_a_library(frame: Any) -> bool:
    """Whether the code that runs is that of an installed module, under its own name."""
    module = sys.modules.get(str(frame.f_globals.get("__name__")))
    origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    return (
        module is not None
        and vars(module) is frame.f_globals
        and origin == frame.f_code.co_filename
        and is_installed(origin)
    )


_TRACERS = {"trace function": _gettrace, "profile function": _getprofile}
_listening: list[bool] = []
