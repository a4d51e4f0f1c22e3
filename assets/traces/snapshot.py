"""A dataset snapshot: which files one revision has, by content digest.

Plain frozen models that survive a JSON round trip. The bytes lie in the raw store; what the
files mean is the business of the modules that read documents.
"""

import hashlib
import json
import os
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from assets.traces.errors import DatasetError

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
BlobId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Revision = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]


class ProblemReason(StrEnum):
    """Why a file of a dataset was left out of its snapshot."""

    UNSAFE_PATH = "UNSAFE_PATH"
    """The path is absolute, leaves the dataset, or has characters no dataset path has."""
    LINK = "LINK"
    """The entry is a symbolic or hard link; links are never followed."""
    NOT_A_FILE = "NOT_A_FILE"
    """The entry is a device, a pipe, a socket or a submodule."""
    TOO_LARGE = "TOO_LARGE"
    """The file is larger than the size limit for its kind."""
    LFS_POINTER = "LFS_POINTER"
    """The file is a Git LFS pointer: the content it stands for was never fetched."""
    DUPLICATE_PATH = "DUPLICATE_PATH"
    """The path is listed twice with different content."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class DatasetFile(_Frozen):
    """One file of a snapshot.

    `digest` is over the raw bytes. `blob_id` is the git blob sha1, or the LFS sha256 where the
    hub keeps the file in large file storage; both in lower-case hex.
    """

    path: str
    digest: Digest
    blob_id: BlobId
    size_bytes: int = Field(ge=0)


class FileProblem(_Frozen):
    """A listed file that is not part of the snapshot, and why.

    `path` is as listed, with anything unprintable escaped.
    """

    path: str
    reason: ProblemReason
    message: str


class DatasetSnapshot(_Frozen):
    """All wanted files of one dataset at one revision, sorted by path.

    `dataset` names the dataset ("flashinfer-ai/flashinfer-trace") wherever it was read from,
    `url` is its page, `location` is where this copy was read. `revision` is a git commit, or
    the git tree hash of the files where there is no commit. `revision_at` is the commit time
    in UTC where known. `authors` is the filter that was asked for (None: all).
    """

    dataset: str = Field(min_length=1)
    url: str | None
    location: str
    revision: Revision
    revision_at: datetime | None
    authors: tuple[str, ...] | None
    files: tuple[DatasetFile, ...]
    problems: tuple[FileProblem, ...] = ()

    @model_validator(mode="after")
    def _files_are_sorted_and_unique(self) -> Self:
        paths = [file.path for file in self.files]
        if any(left >= right for left, right in pairwise(paths)):
            raise ValueError("files must be sorted by path, each path once")
        if self.revision_at is not None and self.revision_at.tzinfo is None:
            raise ValueError("revision_at must have a time zone")
        return self

    @property
    def snapshot_id(self) -> str:
        """`sha256:<hex>` over dataset, revision, authors and files, wherever they were read."""
        identity = {
            "dataset": self.dataset,
            "revision": self.revision,
            "authors": None if self.authors is None else sorted(self.authors),
            "files": [[f.path, f.digest, f.blob_id, f.size_bytes] for f in self.files],
        }
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def save_snapshot(snapshot: DatasetSnapshot, path: Path) -> None:
    """Write a snapshot as JSON; the file appears complete or not at all."""
    write_atomically(path, snapshot.model_dump_json().encode())


def load_snapshot(path: Path) -> DatasetSnapshot:
    """Read a snapshot that `save_snapshot` wrote; `DatasetError` names the file if it is bad."""
    try:
        return DatasetSnapshot.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        summary = " ".join(str(error).split())
        raise DatasetError(f"{path}: not a readable dataset snapshot ({summary})") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the target, flush to disk, rename over it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
