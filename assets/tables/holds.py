"""Say that a folder is in use by this process, so that nobody takes it for one of a dead process.

A hold is a shared lock of the operating system on the folder; it ends with the process, however
that ends, or with the folder. Reading published files has leases of its own, in `leases.py`.
"""

import fcntl
import os
import shutil
from pathlib import Path

_held: dict[Path, int] = {}


def hold(folder: Path) -> None:
    """Make a folder where it is not there, and hold it until it is gone or this process ends."""
    for gone in [path for path, held in _held.items() if not _is_still(path, held)]:
        os.close(_held.pop(gone))
    while folder not in _held:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        # Waits at most while somebody removes the folder, or looks whether it is held.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if _is_still(folder, descriptor):
            _held[folder] = descriptor
        else:
            os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether any process holds a folder."""
    descriptor = _locked_alone(folder)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def remove_unheld(folder: Path, *, only_content: bool = False) -> bool:
    """Remove a folder that no process holds; False where one does, or it is gone already."""
    descriptor = _locked_alone(folder)
    if descriptor is None:
        return False
    try:
        for path in folder.iterdir() if only_content else [folder]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    return True


def _locked_alone(folder: Path) -> int | None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _is_still(folder: Path, descriptor: int) -> bool:
    """Whether a path leads to the folder that a descriptor was opened on."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
