"""Raw bytes of dataset files, kept once per content digest, compressed.

Layout under the root: `ab/<sha256 hex>.zst` holds the bytes as zstd (readable with the `zstd`
tool), `blobs.index` is the journal, `tmp/` holds files being written.

Durability: a file gets its final name by a rename, so after a kill it is there whole or not at
all. After a power cut a renamed file may still be torn. The journal therefore has two kinds of
lines: `<blob id> <digest>` at once, a hint where to look for a blob, and `- <digest>` once file
and folder were flushed to disk. A digest without the second kind is verified when first asked
for, and its file is dropped if torn. Every read checks the digest.
"""

import ctypes
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pyarrow as pa

from assets.traces.errors import RawStoreError

_INDEX_LINE = re.compile(rb"(-|[0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{64})")
_FILE_NAME = re.compile(r"[0-9a-f]{64}\.zst")
_STALE_TEMPORARY_S = 3600.0
_COMMIT_EVERY_FILES = 1024
_COMMIT_EVERY_BYTES = 64 * 1024 * 1024
_FLUSH_ONE_BY_ONE = 32
"""From so many files on, one flush of their file system costs less than theirs."""
_COPY_CHUNK_BYTES = 256 * 1024


def digest_of(data: bytes) -> str:
    """`sha256:<hex>` of raw bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class RawStore:
    """Content-addressed raw bytes under one folder; safe for threads and for two processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._temporary = root / "tmp"
        self._index = root / "blobs.index"
        self._lock = threading.RLock()
        self._counter = count()
        self._batches = 0
        self._pending: list[str] = []
        self._pending_bytes = 0
        self._blobs: dict[str, str] = {}
        self._stored: set[str] = set()
        self._index_position = 0
        self._codec = pa.Codec("zstd")
        self._temporary.mkdir(parents=True, exist_ok=True)
        self._remove_stale_temporaries()
        self._read_index()

    def put(self, data: bytes, blob_id: str | None = None) -> str:
        """Store bytes (once) and return their digest, remembering the blob id they came with.

        Durable on return, or at the end of the enclosing `batch()`. Raises `RawStoreError` if the
        disk cannot take them.
        """
        digest = digest_of(data)
        with self._writing():
            if not self.has(digest):
                temporary = self._temporary / f"{os.getpid()}-{next(self._counter)}"
                temporary.write_bytes(self._codec.compress(data, asbytes=True))
                self._publish(temporary, digest)
            self._remember(digest, blob_id, len(data))
        return digest

    def put_file(self, path: Path, blob_id: "str | hashlib._Hash | None" = None) -> str:
        """Store a file's bytes, read once and never held in memory; otherwise as `put`.

        A hash as the blob id is updated with the bytes, and its digest is the blob id.
        """
        sha256, size_bytes = hashlib.sha256(), 0
        temporary = self._temporary / f"{os.getpid()}-{next(self._counter)}"
        with path.open("rb") as source, self._writing():
            with pa.output_stream(temporary, compression="zstd") as sink:
                while chunk := source.read(_COPY_CHUNK_BYTES):
                    sha256.update(chunk)
                    if blob_id is not None and not isinstance(blob_id, str):
                        blob_id.update(chunk)
                    sink.write(chunk)
                    size_bytes += len(chunk)
            digest = "sha256:" + sha256.hexdigest()
            if self.has(digest):
                temporary.unlink()
            else:
                self._publish(temporary, digest)
            if blob_id is not None and not isinstance(blob_id, str):
                blob_id = blob_id.hexdigest()
            self._remember(digest, blob_id, size_bytes)
        return digest

    def get(self, digest: str, size_bytes: int | None = None) -> bytes:
        """The bytes of a digest, verified; `RawStoreError` names the file if they are not there.

        Where their size is given, they are read in one go and not copied while they grow.
        """
        path = self._path(digest)
        try:
            with pa.input_stream(path, compression="zstd") as stream:
                data: bytes = stream.read(size_bytes)
        except FileNotFoundError as error:
            raise RawStoreError(f"{path}: not in the raw store; pull the dataset again") from error
        except OSError as error:
            raise RawStoreError(
                f"{path}: unreadable ({error}); remove it and pull again"
            ) from error
        if digest_of(data) != digest:
            raise RawStoreError(f"{path}: the bytes are not {digest}; remove it and pull again")
        return data

    def has(self, digest: str) -> bool:
        """Whether the bytes of a digest are stored whole."""
        path = self._path(digest)
        if not path.is_file():
            return False
        with self._lock:
            if digest in self._stored:
                return True
        try:
            self.get(digest)
        except RawStoreError:
            path.unlink(missing_ok=True)
            return False
        self._remember(digest, None, 0)
        return True

    def digest_of_blob(self, blob_id: str) -> str | None:
        """The digest that a blob id was stored under, if its bytes are still here."""
        with self._lock:
            digest = self._blobs.get(blob_id)
        return digest if digest is not None and self.has(digest) else None

    def digests(self) -> Iterator[str]:
        """Every digest that has a file here, sorted."""
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            for path in sorted(folder.iterdir()):
                if _FILE_NAME.fullmatch(path.name):
                    yield f"sha256:{path.stem}"

    def refresh(self) -> None:
        """Take in what other processes stored since this store was opened."""
        with self._lock:
            self._read_index()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Flush to disk every thousand files and at the end, not after each `put`."""
        with self._lock:
            self._batches += 1
        try:
            yield
        finally:
            with self._lock, self._writing():
                self._batches -= 1
                self._commit()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RawStoreError(f"{self.root}: cannot be written ({error})") from error

    def _path(self, digest: str) -> Path:
        hexadecimal = digest.removeprefix("sha256:")
        return self.root / f"{hexadecimal[:2]}/{hexadecimal}.zst"

    def _publish(self, temporary: Path, digest: str) -> None:
        path = self._path(digest)
        try:
            temporary.replace(path)
        except FileNotFoundError:
            path.parent.mkdir(exist_ok=True)
            temporary.replace(path)

    def _remember(self, digest: str, blob_id: str | None, size_bytes: int) -> None:
        with self._lock:
            if blob_id is not None and self._blobs.get(blob_id) != digest:
                self._blobs[blob_id] = digest
                self._append([(blob_id, digest)], flush=self._batches == 0)
            if digest in self._stored:
                return
            self._stored.add(digest)
            self._pending.append(digest)
            self._pending_bytes += size_bytes
            if (
                self._batches == 0
                or len(self._pending) >= _COMMIT_EVERY_FILES
                or self._pending_bytes >= _COMMIT_EVERY_BYTES
            ):
                self._commit()

    def _commit(self) -> None:
        """Flush pending files and their folders, then say so in the journal."""
        if not self._pending:
            return
        files = {self._path(digest) for digest in self._pending}
        if len(files) < _FLUSH_ONE_BY_ONE or not _flush_file_system(self.root):
            for path in [*files, *{file.parent for file in files}, self.root]:
                _flush(path)
        self._append([("-", digest) for digest in self._pending], flush=True)
        self._pending.clear()
        self._pending_bytes = 0

    def _append(self, entries: list[tuple[str, str]], *, flush: bool) -> None:
        lines = "".join(f"{key} {digest.removeprefix('sha256:')}\n" for key, digest in entries)
        descriptor = os.open(self._index, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size_bytes = os.fstat(descriptor).st_size
            if size_bytes and os.pread(descriptor, 1, size_bytes - 1) != b"\n":
                lines = "\n" + lines  # the line before was torn by a power cut
            os.write(descriptor, lines.encode())
            if flush:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read_index(self) -> None:
        if not self._index.exists():
            return
        with self._index.open("rb") as stream:
            stream.seek(self._index_position)
            text = stream.read()
        complete = text.rfind(b"\n") + 1
        self._index_position += complete
        for line in text[:complete].split(b"\n"):
            if match := _INDEX_LINE.fullmatch(line):
                digest = "sha256:" + match[2].decode()
                if match[1] == b"-":
                    self._stored.add(digest)
                else:
                    self._blobs[match[1].decode()] = digest

    def _remove_stale_temporaries(self) -> None:
        oldest = time.time() - _STALE_TEMPORARY_S
        for path in self._temporary.iterdir():
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink()
            except FileNotFoundError:  # another process was quicker
                continue


def _flush_file_system(folder: Path) -> bool:
    """Flush the file system that a folder lies on (Linux `syncfs`); False where that is missing."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)
    return True


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
