"""Writing an answer to the file that a person named: whole or not at all.

What the warehouse itself writes has rules of its own, see `assets.tables.warehouse`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SYSTEM_FOLDERS = ("/dev/", "/proc/")


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Where to write what shall appear at `path` when the block ends well.

    A link is followed and stays a link. A pipe, a device or `/dev/stdout` is written to and not
    replaced.

    Raises:
        OSError: the place cannot be written, or is a folder.
    """
    if path.is_dir():
        raise IsADirectoryError(21, "is a folder", str(path))
    if _is_plain(path):
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="kernelindex-") as folder:
        temporary = Path(folder, path.name)
        yield temporary
        with temporary.open("rb") as written, path.open("wb") as target_stream:
            shutil.copyfileobj(written, target_stream)


def _is_plain(path: Path) -> bool:
    if str(path.absolute()).startswith(_SYSTEM_FOLDERS):
        return False  # /dev/stdout may lead to a file, whose other writers would lose it
    return path.is_file() or not path.exists()
