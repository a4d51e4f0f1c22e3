"""One measurement per GPU: an advisory lock that the kernel drops when the worker is gone."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path


class GpuBusy(Exception):  # noqa: N818
    """Another worker measures on this GPU."""


@contextlib.contextmanager
def gpu_lock(folder: Path, gpu: str) -> Iterator[Path]:
    """Hold `<folder>/gpu-<gpu>.lock`; raises `GpuBusy` naming the holder when it is taken.

    The file is left behind on purpose: deleting it would let two workers lock two files.
    """
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)  # shared by every user of the machine, like /tmp
    descriptor = _open(path := folder / f"gpu-{re.sub(r'[^A-Za-z0-9._-]', '_', gpu)}.lock")
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 64, 0).decode("ascii", errors="replace").strip()
            raise GpuBusy(
                f"GPU {gpu} is being measured by process {holder or 'unknown'} ({path})"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield path
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # Without O_CREAT first: kernels refuse it for another user's file in a shared folder.
        return os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
        return descriptor
