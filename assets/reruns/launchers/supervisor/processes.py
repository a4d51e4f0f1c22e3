"""Processes of one run on this machine: identity, trees, leftovers, signals.

Reads `/proc` only; starting and supervising a worker is in `supervise`.
"""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass
from pathlib import Path

RUN_MARKER = "KERNELINDEX_RUN_DIRECTORY"
"""Environment variable every process of a run inherits; its value is the run directory."""

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ProcessIdentity:
    """One process for good: a pid alone is given to another process sooner or later."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True)
class _Stat:
    state: str
    parent_pid: int
    start_ticks: int


def boot_id() -> str:
    """Identity of this boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of a living process, None when there is none (or only a zombie)."""
    stat = _read_stat(pid)
    if stat is None or stat.state in "ZX":
        return None
    return ProcessIdentity(pid, stat.start_ticks, boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Say whether exactly this process still runs on this machine."""
    return identify(identity.pid) == identity


def descendants(root_pid: int) -> list[int]:
    """List the living children of a process, their children and so on."""
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        stat = _read_stat(pid)
        if stat is not None and stat.state not in "ZX":
            children.setdefault(stat.parent_pid, []).append(pid)
    found: list[int] = []
    waiting = [root_pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def marked(run_directory: Path) -> list[int]:
    """List the living processes that were started for this run, whoever their parent is now."""
    wanted = str(run_directory.resolve())
    return [pid for pid, directory in all_marked().items() if directory == wanted]


def all_marked() -> dict[int, str]:
    """Map each living process of any run on this machine to the run directory it names."""
    found = {}
    for pid in _all_pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:  # gone meanwhile, or another user's
            continue
        for entry in environment.split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == RUN_MARKER.encode() and identify(pid) is not None:
                found[pid] = os.fsdecode(value)
    return found


def signal_all(pids: list[int], signal_number: int) -> None:
    """Send one signal to each; those already gone are no error."""
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            continue


def kill_marked(run_directory: Path, timeout_s: float = 5.0) -> list[int]:
    """Kill what is left of a run whose supervisor is gone; return the pids that were killed.

    Looks until nothing is found twice in a row: a dying tree may fork once more, and a process
    shows no environment in the moment it executes another program.
    """
    killed: list[int] = []
    empty_looks = 0
    give_up_at = time.monotonic() + timeout_s
    while empty_looks < 2 and time.monotonic() < give_up_at:
        left = [pid for pid in marked(run_directory) if pid != os.getpid()]
        empty_looks = 0 if left else empty_looks + 1
        signal_all(left, 9)
        killed += [pid for pid in left if pid not in killed]
        time.sleep(0.02)
    return killed


def become_subreaper() -> None:
    """Let orphans of this process's descendants become its children, so that none escapes."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_when_parent_dies(signal_number: int) -> None:
    """Ask the kernel for a signal to this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {value}): {os.strerror(code)}")


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _read_stat(pid: int) -> _Stat | None:
    """Parse /proc/PID/stat (proc(5)); the name in brackets may itself hold brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return _Stat(state=fields[0], parent_pid=int(fields[1]), start_ticks=int(fields[19]))
