"""A dataset in a `.tar.gz` or `.zip`: read in memory, nothing is ever extracted.

Members are untrusted: links and odd paths are refused, sizes are limited one by one and in all,
so that an archive cannot write anywhere or fill memory or disk.
"""

import gzip
import stat
import tarfile
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar, cast

from assets.traces.errors import DatasetError
from assets.traces.identity import DatasetIdentity, identity_of_place, parse_identity
from assets.traces.intake import MAX_DOCUMENT_BYTES, Intake, check_revision, size_limit_of
from assets.traces.layout import (
    IDENTITY_FILE,
    TENSOR_SUFFIX,
    is_wanted_locally,
    known_folders,
    path_fault,
    printable,
)
from assets.traces.progress import PullProgress
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetSnapshot, FileProblem, ProblemReason

Entry = TypeVar("Entry")
TAR_SUFFIXES = (".tar.gz", ".tgz")
ZIP_SUFFIX = ".zip"
MAX_MEMBERS = 200_000
MAX_TOTAL_BYTES = 32 * 1024**3
_COPY_CHUNK_BYTES = 1024 * 1024
UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)
"""What reading a damaged archive may raise."""


def is_archive(path: Path) -> bool:
    """Whether a file's name is one of an archive that can be pulled."""
    return path.name.endswith((*TAR_SUFFIXES, ZIP_SUFFIX))


def pull_archive(
    file: Path,
    *,
    location: str,
    revision: str | None,
    authors: Sequence[str] | None,
    store: RawStore,
    identity: DatasetIdentity | None = None,
    with_tensors: bool = False,
    progress: Callable[[PullProgress], None] | None = None,
) -> DatasetSnapshot:
    """Take in the files of an archive, as `pull_directory` takes those of a directory.

    One folder around everything is looked through. The revision is the one given, else the git
    tree hash of the files. Raises `DatasetError` if the archive is unreadable or oversized.
    """
    check_revision(revision)
    archive: _Archive = _Zip(file) if file.name.endswith(ZIP_SUFFIX) else _Tar(file)
    with _readable(file):
        members = list(archive.members())
    prefix = _folder_around([member.path for member in members])
    problems: list[FileProblem] = []
    paths = _wanted(members, prefix, problems, with_tensors=with_tensors)
    intake = Intake(location, sorted(paths), authors, store, problems, progress)
    found = identity_of_place(file)
    wanted, taken = set(paths), set(intake.paths)
    with _readable(file), store.batch():
        for member, stream in archive.contents():
            path = member.path.removeprefix(prefix)
            if path == IDENTITY_FILE:
                found = _identity(stream, file)
            elif path in taken and member.problem is None:
                _take(stream, member, path, intake, store)
            elif revision is None and path in wanted and member.problem is None:
                intake.count_in(path, stream.read(member.size_bytes))
    return intake.snapshot(identity or found, revision, None)


@dataclass(frozen=True)
class _Member:
    path: str
    size_bytes: int
    problem: ProblemReason | None
    """Why this is no plain file, if it is none."""


class _Archive(ABC):
    @abstractmethod
    def members(self) -> Iterator[_Member]:
        """What the archive says it holds, folders left out."""

    @abstractmethod
    def contents(self) -> Iterator[tuple[_Member, IO[bytes]]]:
        """Every plain file with its bytes, to be read before the next is asked for."""


class _Tar(_Archive):
    def __init__(self, file: Path) -> None:
        self._file = file

    def members(self) -> Iterator[_Member]:
        for _, _, member in self._entries():
            yield member

    def contents(self) -> Iterator[tuple[_Member, IO[bytes]]]:
        for tar, info, member in self._entries():
            stream = tar.extractfile(info) if member.problem is None else None
            if stream is not None:
                yield member, stream

    def _entries(self) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, _Member]]:
        with gzip.open(self._file) as unzipped:
            limited = cast("IO[bytes]", _LimitedReader(cast("IO[bytes]", unzipped), self._file))
            with tarfile.open(fileobj=limited, mode="r:") as tar:
                for info in _counted(tar, self._file):
                    if not info.isdir():
                        path = info.name.removeprefix("./")
                        yield tar, info, _Member(path, info.size, _tar_problem(info))
            while limited.read(min(_COPY_CHUNK_BYTES, MAX_DOCUMENT_BYTES)):
                pass  # gzip checks its sum only at the very end


class _Zip(_Archive):
    def __init__(self, file: Path) -> None:
        self._file = file

    def members(self) -> Iterator[_Member]:
        for _, _, member in self._entries():
            yield member

    def contents(self) -> Iterator[tuple[_Member, IO[bytes]]]:
        for opened, info, member in self._entries():
            if member.problem is None:
                with opened.open(info) as stream:
                    yield member, stream

    def _entries(self) -> Iterator[tuple[zipfile.ZipFile, zipfile.ZipInfo, _Member]]:
        with zipfile.ZipFile(self._file) as opened:
            total_bytes = 0
            for info in _counted(opened.infolist(), self._file):
                total_bytes += info.file_size
                if total_bytes > MAX_TOTAL_BYTES:
                    raise DatasetError(
                        f"{self._file}: unpacks to more than {MAX_TOTAL_BYTES} bytes"
                    )
                if not info.is_dir():
                    path = info.filename.removeprefix("./")
                    yield opened, info, _Member(path, info.file_size, _zip_problem(info))


class _LimitedReader:
    """Unpacked bytes of a tar, refusing what only a hostile archive asks for.

    Every header and file is read through here: a single read is at most one document, and the
    whole at most `MAX_TOTAL_BYTES`.
    """

    def __init__(self, stream: IO[bytes], file: Path) -> None:
        self._stream = stream
        self._file = file

    def read(self, size_bytes: int = -1) -> bytes:
        if not 0 <= size_bytes <= MAX_DOCUMENT_BYTES + tarfile.BLOCKSIZE:
            raise DatasetError(f"{self._file}: has a header or file of {size_bytes} bytes")
        self._check(self._stream.tell() + size_bytes)
        return self._stream.read(size_bytes)

    def seek(self, position: int, whence: int = 0) -> int:
        self._check(position)
        return self._stream.seek(position, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def _check(self, position: int) -> None:
        if position > MAX_TOTAL_BYTES:
            raise DatasetError(f"{self._file}: unpacks to more than {MAX_TOTAL_BYTES} bytes")


def _counted(entries: Iterable[Entry], file: Path) -> Iterator[Entry]:
    for number, entry in enumerate(entries):
        if number >= MAX_MEMBERS:
            raise DatasetError(f"{file}: has more than {MAX_MEMBERS} members")
        yield entry


def _tar_problem(info: tarfile.TarInfo) -> ProblemReason | None:
    if info.issym() or info.islnk():
        return ProblemReason.LINK
    return None if info.isreg() else ProblemReason.NOT_A_FILE


def _zip_problem(info: zipfile.ZipInfo) -> ProblemReason | None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return ProblemReason.LINK
    return None if kind in (0, stat.S_IFREG) else ProblemReason.NOT_A_FILE


def _folder_around(paths: Sequence[str]) -> str:
    """`name/` if all members lie in that one folder and it is none of the layout's own."""
    first, slash, _ = paths[0].partition("/") if paths else ("", "", "")
    around = first + slash
    if not slash or first in known_folders() or path_fault(first) is not None:
        return ""
    return around if all(path.startswith(around) for path in paths) else ""


def _wanted(
    members: Sequence[_Member], prefix: str, problems: list[FileProblem], *, with_tensors: bool
) -> list[str]:
    """Paths to take; what is refused goes to `problems`."""
    listed = Counter(member.path.removeprefix(prefix) for member in members)
    folders = {path[:end] for path in listed for end, letter in enumerate(path) if letter == "/"}
    wanted: list[str] = []
    for member in members:
        path = member.path.removeprefix(prefix)
        if not is_wanted_locally(path, with_tensors=with_tensors):
            continue
        shown = printable(path)
        fault = path_fault(path)
        limit_bytes = size_limit_of(path)
        if fault is not None:
            reason, message = ProblemReason.UNSAFE_PATH, f"the path {fault}"
        elif member.problem is not None:
            reason, message = member.problem, "is no plain file"
        elif listed[path] > 1 or path in folders:
            reason, message = ProblemReason.DUPLICATE_PATH, "is in the archive more than once"
        elif member.size_bytes > limit_bytes:
            reason = ProblemReason.TOO_LARGE
            message = f"has {member.size_bytes} bytes, more than the limit of {limit_bytes}"
        else:
            wanted.append(path)
            continue
        problem = FileProblem(path=shown, reason=reason, message=f"{shown}: {message}")
        if problem not in problems:
            problems.append(problem)
    return wanted


def _take(stream: IO[bytes], member: _Member, path: str, intake: Intake, store: RawStore) -> None:
    if not path.endswith(TENSOR_SUFFIX):
        intake.add(intake.stored(path, stream.read(member.size_bytes)))
        return
    with tempfile.NamedTemporaryFile(dir=store.root / "tmp") as copy:
        while chunk := stream.read(_COPY_CHUNK_BYTES):
            copy.write(chunk)
        copy.flush()
        intake.add(intake.stored_tensor(path, Path(copy.name)))


def _identity(stream: IO[bytes], file: Path) -> DatasetIdentity:
    return parse_identity(stream.read(64 * 1024), str(file))


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn every way in which an archive can be broken into one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise DatasetError(f"{file}: no such file") from error
    except UNREADABLE as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise DatasetError(f"{file}: not a readable archive ({printable(text)})") from error
