"""Large downloads under way: one file each, named by blob id, locked by whoever fetches it."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from assets.traces.errors import TransientDatasetError

_SUFFIX = ".part"
_ABANDONED_S = 7 * 24 * 3600.0


@contextmanager
def partial_file(folder: Path, blob_id: str) -> Iterator[tuple[Path, BufferedRandom]]:
    """What earlier runs received of a blob, open for more; removed when the block succeeds.

    Raises `TransientDatasetError` if another process is fetching the same blob.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"{blob_id}{_SUFFIX}"
    with path.open("a+b") as stream:
        if not _lock(stream) or not path.exists():
            raise TransientDatasetError(
                f"{path}: another process is downloading it; pull again when it is done"
            )
        yield path, stream
        path.unlink()


def remove_leftovers(folder: Path, is_stored: Callable[[str], bool]) -> None:
    """Remove what a kill left of blobs that were stored, and what nobody came back for."""
    abandoned_before = time.time() - _ABANDONED_S
    for path in folder.glob(f"*{_SUFFIX}"):
        with path.open("a+b") as stream:
            left = is_stored(path.stem) or path.stat().st_mtime < abandoned_before
            if left and _lock(stream):
                path.unlink(missing_ok=True)


def _lock(stream: BufferedRandom) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
