"""Directories as one tar stream, for machines that are reached through `ssh` only.

A stream that breaks anywhere leaves nothing behind that could be taken for the whole: the
receiver unpacks beside the target, asks for the closing entry, and renames.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from . import run_directory

_CLOSING_ENTRY = ".complete"


class TransferError(Exception):
    """A stream that ended early or holds what a run directory may not hold."""


def pack(directory: Path, stream: BinaryIO, names: list[str] | None = None) -> None:
    """Write the regular files below a directory as an uncompressed tar stream.

    With `names`, only these entries of the directory. Links and devices are left out.
    """
    tops = sorted(directory.iterdir()) if names is None else [directory / name for name in names]
    with tarfile.open(fileobj=stream, mode="w|") as archive:
        for top in tops:
            for path in [top, *sorted(top.rglob("*"))]:
                if path.is_file() and not path.is_symlink():
                    archive.add(path, arcname=str(path.relative_to(directory)), recursive=False)
        archive.addfile(tarfile.TarInfo(_CLOSING_ENTRY), io.BytesIO())


def unpack(stream: BinaryIO, target: Path, limit_bytes: int) -> bool:
    """Unpack a stream so that `target` appears whole, once; False when it was there before.

    The files lie in `.partial-NAME` beside the target until then; leftovers of a transfer that
    was cut are replaced, so the caller holds a lock when two could unpack the same target.
    Raises TransferError for a stream that ended early, links, paths outside, or too many bytes.
    """
    if target.exists():
        return False
    partial = target.with_name(f".partial-{target.name}")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True, mode=0o700)
    try:
        _extract(stream, partial, limit_bytes)
    except (TransferError, tarfile.TarError) as error:
        shutil.rmtree(partial)
        raise TransferError(f"{target.name}: {error}") from error
    try:
        partial.rename(target)
    except OSError:
        shutil.rmtree(partial)
        if target.exists():
            return False
        raise
    run_directory.sync_directory(target.parent)
    return True


def _extract(stream: BinaryIO, directory: Path, limit_bytes: int) -> None:
    size_bytes = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.name == _CLOSING_ENTRY:
                return
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts:
                raise TransferError(f"the path {member.name!r} leads outside")
            if not member.isfile():
                raise TransferError(f"{member.name!r} is no regular file")
            size_bytes += member.size
            if size_bytes > limit_bytes:
                raise TransferError(f"more than {limit_bytes} bytes")
            source = archive.extractfile(member)
            if source is None:
                raise TransferError(f"{member.name!r} has no content")
            _write(source, directory / path, member.mode & 0o700)
    raise TransferError("the stream ended before everything was sent")


def _write(source: IO[bytes], path: Path, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode | 0o600)
