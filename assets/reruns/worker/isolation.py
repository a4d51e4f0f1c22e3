"""What a candidate's process may see and use: environment, network, limits, its own session.

Every measure is tried and reported; one that the kernel does not allow is named in the result.
Pure standard library, Linux.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

#: Everything else, tokens and keys among it, is not passed on.
ALLOWED_ENVIRONMENT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CC",
    "CXX",
)

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def clean_environment(
    environment: Mapping[str, str], home: Path, visible_gpu: str | None
) -> dict[str, str]:
    """The environment of child processes: allow-listed names, a home of their own, one GPU.

    `visible_gpu` is what CUDA_VISIBLE_DEVICES shall say; None hides every GPU.
    """
    kept = {name: environment[name] for name in ALLOWED_ENVIRONMENT if name in environment}
    # Where ninja and nvcc usually lie, also when the caller's path does not name them.
    places = [str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]
    kept["PATH"] = os.pathsep.join([*places, "/usr/local/cuda/bin"])
    kept.update(
        {
            "HOME": str(home),
            "TMPDIR": str(home),
            "CUDA_VISIBLE_DEVICES": visible_gpu if visible_gpu is not None else "",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
        }
    )
    return kept


def bubblewrap(scratch: Path) -> list[str]:
    """The command that makes the whole file system read-only but for `scratch` and devices."""
    place = str(scratch)
    return [
        "bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc",
        "--tmpfs", "/dev/shm", "--bind", place, place, "--die-with-parent", "--",
    ]  # fmt: skip


def become_supervisor() -> None:
    """Adopt orphans of child processes, and keep other processes out of this one's memory."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the one that started it is gone.

    `parent` is that process, or 0 where a sandbox stands between the two.
    """
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if parent and os.getppid() != parent:
        os._exit(1)


def confine(file_bytes: int, sandbox: str, keep_network: bool) -> dict[str, str]:
    """Confine this process for good and say, per measure, what took effect.

    No new privileges, no core dumps, files of at most `file_bytes`, no network unless kept.
    """
    report = {"session": "own session and process group", "environment": "allow-list"}
    report["filesystem"] = (
        "read-only but for a folder of its own (bubblewrap)"
        if sandbox == "bwrap"
        else "whatever the worker's user may read and write"
    )
    report["privileges"] = (
        "no new privileges" if _prctl(_PR_SET_NO_NEW_PRIVS, 1) else "unchanged: prctl failed"
    )
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: file_bytes}
    for limit, value in limits.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))
    report["files"] = f"at most {resource.getrlimit(resource.RLIMIT_FSIZE)[0]} bytes each"
    report["network"] = "host network: kept on request" if keep_network else _leave_network()
    return report


def _leave_network() -> str:
    """Move into an empty network namespace, through a user namespace where root is needed."""
    user, group = os.getuid(), os.getgid()
    if _unshare(_CLONE_NEWNET):
        return "none: own network namespace"
    if not _unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        return "host network: the kernel does not allow unshare"
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with contextlib.suppress(OSError):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    return "none: own user and network namespace"


def _unshare(flags: int) -> bool:
    function = getattr(ctypes.CDLL(None, use_errno=True), "unshare", None)
    return function is not None and function(flags) == 0


def _prctl(option: int, value: int) -> bool:
    function = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    return function is not None and function(option, value, 0, 0, 0) == 0


def descendants() -> dict[int, int]:
    """Session id by process id of all living descendants of this process, from /proc."""
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            state, parent, _, session = text.rpartition(")")[2].split()[:4]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
                sessions[int(entry.name)] = int(session)
    found: set[int] = set()
    frontier = {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return {pid: sessions[pid] for pid in found}


def resident_bytes(pid: int) -> int:
    """Resident memory of a process in bytes; 0 when it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    return 0
