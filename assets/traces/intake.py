"""Taking files of a local copy into the raw store, one by one, and the snapshot they make.

Shared by directories and archives, which differ only in how they list and read.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from assets.traces import git_objects
from assets.traces.errors import DatasetError
from assets.traces.identity import DatasetIdentity
from assets.traces.layout import TENSOR_SUFFIX, of_authors, printable
from assets.traces.lfs import LfsPointer, parse_pointer
from assets.traces.progress import PullProgress
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile, DatasetSnapshot, FileProblem, ProblemReason

MAX_DOCUMENT_BYTES = 64 * 1024**2
MAX_TENSOR_BYTES = 16 * 1024**3
_REVISION = re.compile(r"[0-9a-f]{40}")


def size_limit_of(path: str) -> int:
    """The most bytes a file of this name may have: 64 MiB of documents, 16 GiB of tensors."""
    return MAX_TENSOR_BYTES if path.endswith(TENSOR_SUFFIX) else MAX_DOCUMENT_BYTES


def check_revision(revision: str | None) -> None:
    """Raise `DatasetError` unless a local copy's revision is 40 hex digits or not given."""
    if revision is not None and not _REVISION.fullmatch(revision):
        raise DatasetError(
            f"revision {revision!r} of a local copy must be a commit id, 40 lower-case hex digits"
        )


@dataclass(frozen=True)
class StoredFile:
    """A file whose bytes are in the store, or an LFS pointer, whose bytes are not."""

    path: str
    blob_id: str
    size_bytes: int
    digest: str | None
    pointer: LfsPointer | None = None
    was_known: bool = False


class Intake:
    """One local pull in progress: which paths to take, and what was taken so far."""

    def __init__(
        self,
        location: str,
        paths: Sequence[str],
        authors: Sequence[str] | None,
        store: RawStore,
        problems: list[FileProblem],
        progress: Callable[[PullProgress], None] | None,
    ) -> None:
        if not paths:
            raise DatasetError(
                f"{location}: no dataset files; expected .json and .jsonl files in definitions/, "
                "workloads/, solutions/ and traces/"
            )
        self.paths = of_authors(paths, authors)
        self._location = location
        self._authors = None if authors is None else tuple(sorted(set(authors)))
        self._store = store
        self._problems = problems
        self._progress = progress
        self._files: list[DatasetFile] = []
        self._blob_ids: dict[str, str] = {}
        self._size_bytes = 0
        self._files_known = 0

    @property
    def blob_ids(self) -> Mapping[str, str]:
        """Git blob sha1 by path, of every document read (pointers included)."""
        return self._blob_ids

    @property
    def sha256_by_path(self) -> dict[str, str]:
        """The sha256 (hex) of every file taken."""
        return {file.path: file.digest.removeprefix("sha256:") for file in self._files}

    def count_in(self, path: str, data: bytes) -> None:
        """Let one document that was not asked for count in the tree hash.

        A revision is of the whole dataset, whichever authors are read of it.
        """
        if not path.endswith(TENSOR_SUFFIX):
            self._blob_ids[path] = git_objects.blob_id(data)

    def stored(self, path: str, data: bytes) -> StoredFile:
        """Store one document, unless it is an LFS pointer; safe for threads."""
        blob_id = git_objects.blob_id(data)
        pointer = parse_pointer(data)
        digest = self._store.put(data, blob_id) if pointer is None else None
        return StoredFile(path, blob_id, len(data), digest, pointer)

    def stored_large(self, path: str, file: Path) -> StoredFile:
        """Store one document that is too large for a pointer without holding it in memory."""
        size_bytes = file.stat().st_size
        blob_hash = git_objects.blob_hash(size_bytes)
        digest = self._store.put_file(file, blob_hash)
        if file.stat().st_size != size_bytes:
            raise DatasetError(f"{file}: changed while it was read; pull again")
        return StoredFile(path, blob_hash.hexdigest(), size_bytes, digest)

    def stored_tensor(self, path: str, file: Path) -> StoredFile:
        """Store one tensor file; its blob id is the sha256 that large file storage would use."""
        with file.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        digest = self._store.put_file(file, sha256)
        return StoredFile(path, sha256, file.stat().st_size, digest)

    def add(self, stored: StoredFile) -> None:
        """List one file that was stored; an LFS pointer becomes a problem instead."""
        if not stored.path.endswith(TENSOR_SUFFIX):
            self._blob_ids[stored.path] = stored.blob_id
        if stored.digest is None:
            self._problems.append(_pointer_problem(stored))
            return
        self._files.append(
            DatasetFile(
                path=stored.path,
                digest=stored.digest,
                blob_id=stored.blob_id,
                size_bytes=stored.size_bytes,
            )
        )
        self._files_known += stored.was_known
        self._size_bytes += stored.size_bytes
        if self._progress is not None:
            self._progress(
                PullProgress(
                    phase="fetch",
                    files_done=len(self._files),
                    files_known=self._files_known,
                    files_total=len(self.paths),
                    size_bytes_done=self._size_bytes,
                    size_bytes_total=0,
                    path=stored.path,
                )
            )

    def snapshot(
        self, identity: DatasetIdentity, revision: str | None, revision_at: datetime | None
    ) -> DatasetSnapshot:
        """What was taken; without a revision, the git tree hash of the documents is used."""
        return DatasetSnapshot(
            dataset=identity.id,
            url=identity.url,
            location=self._location,
            revision=revision or git_objects.tree_id(self._blob_ids),
            revision_at=revision_at,
            authors=self._authors,
            files=tuple(sorted(self._files, key=lambda file: file.path)),
            problems=tuple(sorted(self._problems, key=lambda problem: problem.path)),
        )


def _pointer_problem(stored: StoredFile) -> FileProblem:
    shown = printable(stored.path)
    size_bytes = stored.pointer.size_bytes if stored.pointer else 0
    return FileProblem(
        path=shown,
        reason=ProblemReason.LFS_POINTER,
        message=f"{shown}: is a Git LFS pointer to {size_bytes} bytes that are not here; run "
        "`git lfs pull` and pull again",
    )
