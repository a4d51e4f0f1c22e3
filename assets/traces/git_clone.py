"""What a git work tree's HEAD says, read without running anything the repository configures.

`git status` would run filters and file system monitors named in the repository's own
configuration. Only object reads are used here; whether the work tree is clean is decided by
comparing blob ids.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from assets.traces.lfs import parse_pointer

_GIT_TIMEOUT_S = 60.0
_SHA1_DIGITS = 40


@dataclass(frozen=True)
class Head:
    """The checked-out commit: sha1, commit time in UTC, and every file's blob id by path."""

    commit: str
    committed_at: datetime
    blob_ids: Mapping[str, str]


def read_head(root: Path) -> Head | None:
    """HEAD of a work tree's root; None if it is no such root, has no commit, or git refuses."""
    if not (root / ".git").exists():
        return None
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    listing = _git(root, "ls-tree", "-r", "-z", "--full-tree", "HEAD")
    content = _git(root, "cat-file", "commit", "HEAD")
    if commit is None or listing is None or content is None:
        return None
    sha = commit.decode().strip()
    if len(sha) != _SHA1_DIGITS:  # a repository of git's sha256 format
        return None
    return Head(sha, _commit_time(content), _blob_ids(listing))


def origin_url(root: Path) -> str | None:
    """The URL of the remote `origin`, if there is one."""
    if not (root / ".git").exists():
        return None
    url = _git(root, "config", "--local", "--get", "remote.origin.url")
    return None if url is None else url.decode(errors="replace").strip()


def first_commit(root: Path) -> str | None:
    """The commit that a history begins with, the least where it has several; None without one.

    A shallow clone does not have it.
    """
    if not (root / ".git").exists() or _git(root, "rev-parse", "--is-shallow-repository") in (
        None,
        b"true\n",
    ):
        return None
    commits = _git(root, "rev-list", "--max-parents=0", "HEAD")
    return min(commits.decode().split(), default=None) if commits else None


def pointer_targets(root: Path, blob_ids: Sequence[str]) -> dict[str, str]:
    """LFS sha256 by blob id, for those of the blobs that are LFS pointers."""
    request = "".join(f"{blob}\n" for blob in dict.fromkeys(blob_ids)).encode()
    output = _git(root, "cat-file", "--batch", stdin=request) if request else None
    targets: dict[str, str] = {}
    position = 0
    # Each answer is `<id> <type> <size>\n<content>\n`, or `<id> missing\n`.
    while output and position < len(output):
        end = output.index(b"\n", position)
        blob, *described = output[position:end].split(b" ")
        position = end + 1
        if len(described) == 2:
            size_bytes = int(described[1])
            pointer = parse_pointer(output[position : position + size_bytes])
            position += size_bytes + 1
            if pointer is not None:
                targets[blob.decode()] = pointer.sha256
    return targets


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """Output of a reading git command; None if git is absent or answers with an error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _commit_time(content: bytes) -> datetime:
    """The committer's time of a raw commit object: `committer NAME <MAIL> SECONDS ZONE`."""
    for line in content.split(b"\n\n", 1)[0].split(b"\n"):
        if line.startswith(b"committer "):
            seconds = line.rsplit(b" ", 2)[1]
            return datetime.fromtimestamp(int(seconds), UTC)
    raise ValueError("a commit object without a committer line")


def _blob_ids(listing: bytes) -> dict[str, str]:
    """Path -> blob id from `ls-tree -r -z`: `MODE TYPE ID\\tPATH\\0` for each entry."""
    blob_ids: dict[str, str] = {}
    for entry in listing.split(b"\0"):
        head, _, path = entry.partition(b"\t")
        if path:
            blob_ids[os.fsdecode(path)] = head.split(b" ")[2].decode()
    return blob_ids
