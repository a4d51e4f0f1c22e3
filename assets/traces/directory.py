"""A dataset that lies in a local directory: a plain copy, a git clone, or a hub cache entry.

Every JSON document outside hidden folders is taken, whatever its layout, so that nothing is
overlooked. Links are refused, save those of the hub client's own cache, whose files are links
into the `blobs` folder beside them.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from assets.traces.errors import DatasetError
from assets.traces.git_clone import Head, first_commit, origin_url, pointer_targets, read_head
from assets.traces.identity import (
    DatasetIdentity,
    hub_identity,
    identity_of_history,
    identity_of_place,
    identity_of_remote,
    parse_identity,
)
from assets.traces.intake import Intake, StoredFile, check_revision, size_limit_of
from assets.traces.layout import (
    IDENTITY_FILE,
    TENSOR_SUFFIX,
    is_wanted_locally,
    path_fault,
    printable,
)
from assets.traces.progress import PullProgress
from assets.traces.raw_store import RawStore
from assets.traces.seen_files import SeenFiles
from assets.traces.snapshot import DatasetSnapshot, FileProblem, ProblemReason

_HUB_CACHE_FOLDER = re.compile(r"datasets--(?P<owner>[\w.-]+?)--(?P<name>[\w.-]+)")
_LARGE_BYTES = 1024 * 1024
"""From this size on, a document is read in pieces, so that memory is bounded."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def pull_directory(
    root: Path,
    *,
    location: str,
    revision: str | None,
    authors: Sequence[str] | None,
    store: RawStore,
    identity: DatasetIdentity | None = None,
    with_tensors: bool = False,
    progress: Callable[[PullProgress], None] | None = None,
) -> DatasetSnapshot:
    """Take in the files of a local directory, which the snapshot calls `location`.

    Without an `identity` the directory says which dataset it is, see `identity.py`.

    The revision is the one given (40 hex digits), else the commit of a clean git work tree or of
    a hub cache entry, else the git tree hash of the files. Raises `DatasetError` if the directory
    is missing, has no dataset files, or a file cannot be read.
    """
    check_revision(revision)
    if not root.is_dir():
        raise DatasetError(f"{root}: no such directory")
    cache = _hub_cache_entry(root)
    links_into = None if cache is None else cache.blobs
    problems: list[FileProblem] = []
    paths = sorted(_walk(root, links_into, problems, with_tensors=with_tensors))
    intake = Intake(location, paths, authors, store, problems, progress)
    seen = SeenFiles(store)
    # Hashing and compressing are most of the work, and let other threads run meanwhile.
    resolved = root.resolve()
    with store.batch(), ThreadPoolExecutor(os.cpu_count()) as pool:
        for stored in pool.map(
            lambda path: _stored(resolved / path, path, intake, seen), intake.paths
        ):
            intake.add(stored)
    seen.save()
    head = read_head(root)
    at_head = head is not None and _is_clean(root, head, intake, authors)
    if revision is None and cache is not None:
        revision = cache.revision
    if revision is None and head is not None and at_head:
        revision = head.commit
    if revision is None:
        for path in sorted(set(paths) - set(intake.paths)):
            _count_in(root / path, path, intake)
    if identity is None:
        identity = _identity(root) if cache is None else cache.identity
    return intake.snapshot(
        identity,
        revision,
        head.committed_at if head is not None and revision == head.commit else None,
    )


def _stored(file: Path, path: str, intake: Intake, seen: SeenFiles) -> StoredFile:
    try:
        # The root is resolved, and no links are followed but those of the hub client's cache.
        resolved = file.resolve() if file.is_symlink() else file
        if known := seen.get(resolved):
            return StoredFile(path, known.blob_id, known.size_bytes, known.digest, was_known=True)
        before = resolved.stat()
        if path.endswith(TENSOR_SUFFIX):
            stored = intake.stored_tensor(path, file)
        elif before.st_size > _LARGE_BYTES:
            stored = intake.stored_large(path, file)
        else:
            stored = intake.stored(path, file.read_bytes())
        if stored.digest is not None:
            seen.note(resolved, before, stored.digest, stored.blob_id)
        return stored
    except OSError as error:
        raise DatasetError(f"{file}: cannot be read ({error.strerror})") from error


def _count_in(file: Path, path: str, intake: Intake) -> None:
    try:
        intake.count_in(path, file.read_bytes())
    except OSError as error:
        raise DatasetError(f"{file}: cannot be read ({error.strerror})") from error


def _walk(
    root: Path, links_into: Path | None, problems: list[FileProblem], *, with_tensors: bool
) -> Iterator[str]:
    """Paths of wanted regular files under the root; what is refused goes to `problems`."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(root / folder))
        except OSError as error:
            raise DatasetError(f"{root / folder}: cannot be listed ({error.strerror})") from error
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(path)
                continue
            if not is_wanted_locally(path, with_tensors=with_tensors) and not (
                entry.is_symlink() and entry.is_dir()
            ):
                continue
            problem = _problem(entry, path, links_into)
            if problem is None:
                yield path
            else:
                problems.append(problem)


def _problem(entry: os.DirEntry[str], path: str, links_into: Path | None) -> FileProblem | None:
    shown = printable(path)
    if fault := path_fault(path):
        return FileProblem(
            path=shown, reason=ProblemReason.UNSAFE_PATH, message=f"{shown}: the path {fault}"
        )
    if entry.is_symlink():
        target = Path(entry.path).resolve()
        if links_into is None or target.parent != links_into:
            return FileProblem(
                path=shown,
                reason=ProblemReason.LINK,
                message=f"{shown}: is a link, and links are not followed; put the file itself here",
            )
    status = entry.stat()
    if not stat.S_ISREG(status.st_mode):
        return FileProblem(
            path=shown, reason=ProblemReason.NOT_A_FILE, message=f"{shown}: is not a regular file"
        )
    limit_bytes = size_limit_of(path)
    if status.st_size > limit_bytes:
        return FileProblem(
            path=shown,
            reason=ProblemReason.TOO_LARGE,
            message=f"{shown}: has {status.st_size} bytes, more than the limit of {limit_bytes}",
        )
    return None


def _is_clean(root: Path, head: Head, intake: Intake, authors: Sequence[str] | None) -> bool:
    """Whether the files read are exactly those of the commit, LFS content included."""
    committed = {path for path in head.blob_ids if is_wanted_locally(path)}
    read = intake.blob_ids
    if authors is None and committed - set(read):
        return False
    differing = [path for path, blob in read.items() if head.blob_ids.get(path) != blob]
    if not differing:
        return True
    if any(path not in head.blob_ids for path in differing):
        return False
    targets = pointer_targets(root, [head.blob_ids[path] for path in differing])
    sha256 = intake.sha256_by_path
    return all(targets.get(head.blob_ids[path]) == sha256.get(path, "") for path in differing)


def _identity(root: Path) -> DatasetIdentity:
    file = root / IDENTITY_FILE
    if file.is_file():
        try:
            return parse_identity(file.read_bytes(), str(root))
        except OSError as error:
            raise DatasetError(f"{file}: cannot be read ({error.strerror})") from error
    remote = origin_url(root)
    if remote:
        return identity_of_remote(remote, root)
    commit = first_commit(root)
    return identity_of_place(root) if commit is None else identity_of_history(commit)


@dataclass(frozen=True)
class _HubCacheEntry:
    identity: DatasetIdentity
    revision: str
    blobs: Path


def _hub_cache_entry(root: Path) -> _HubCacheEntry | None:
    """What the hub client's cache layout says: `datasets--OWNER--NAME/snapshots/<commit>/`."""
    resolved = root.resolve()
    repository = resolved.parent.parent
    match = _HUB_CACHE_FOLDER.fullmatch(repository.name)
    if resolved.parent.name != "snapshots" or match is None or not _COMMIT.fullmatch(resolved.name):
        return None
    return _HubCacheEntry(
        hub_identity(f"{match['owner']}/{match['name']}"), resolved.name, repository / "blobs"
    )
