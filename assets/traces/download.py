"""Downloading one file of the hub: resumed where it broke off, and checked before it counts.

Nothing is handed on unless size and digest are those of the listing, whatever the server said.
"""

import hashlib
import time
from abc import ABC, abstractmethod
from io import BufferedRandom
from urllib.parse import quote

import requests

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.git_objects import blob_header
from assets.traces.hub_http import HubClient, looks_like_html, shown
from assets.traces.hub_listing import ListedFile
from assets.traces.lfs import parse_pointer
from assets.traces.retries import PassingError, retrying

MEMORY_LIMIT_BYTES = 8 * 1024**2
"""Larger files are received on disk, where the next run finds what arrived."""
MIN_BYTES_PER_S = 100_000
"""The time limit of a file grows with its size, at this rate."""
MIN_PROGRESS_BYTES = 16 * 1024
"""An attempt that brought less counts as one that failed."""
WRONG_CONTENT_ATTEMPTS = 3
_HEAD_BYTES = 1024


class Body(ABC):
    """What arrived of a file so far."""

    size_bytes = 0

    @abstractmethod
    def append(self, chunk: bytes) -> None:
        """Add bytes at the end."""

    @abstractmethod
    def reset(self) -> None:
        """Drop everything."""

    @abstractmethod
    def head(self) -> bytes:
        """The first bytes, to tell what they are."""

    @abstractmethod
    def digest(self, *, lfs: bool) -> str:
        """The sha256 (of large file storage) or git blob sha1 of what arrived, in hex."""


class MemoryBody(Body):
    """A small file, held in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def data(self) -> bytes:
        """All bytes that arrived."""
        return bytes(self._data)

    def append(self, chunk: bytes) -> None:
        """Add bytes at the end."""
        self._data += chunk
        self.size_bytes = len(self._data)

    def reset(self) -> None:
        """Drop everything."""
        self._data.clear()
        self.size_bytes = 0

    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self._data[:_HEAD_BYTES])

    def digest(self, *, lfs: bool) -> str:
        """The digest of what arrived."""
        if lfs:
            return hashlib.sha256(self._data).hexdigest()
        header = blob_header(len(self._data))
        return hashlib.sha1(header + self._data, usedforsecurity=False).hexdigest()


class FileBody(Body):
    """A large file, received into a file opened for reading and writing."""

    def __init__(self, stream: BufferedRandom) -> None:
        self._stream = stream
        self.size_bytes = stream.seek(0, 2)

    def append(self, chunk: bytes) -> None:
        """Add bytes at the end."""
        self._stream.seek(0, 2)
        self._stream.write(chunk)
        self.size_bytes += len(chunk)

    def reset(self) -> None:
        """Drop everything."""
        self._stream.seek(0)
        self._stream.truncate()
        self.size_bytes = 0

    def head(self) -> bytes:
        """The first bytes."""
        self._stream.seek(0)
        return self._stream.read(_HEAD_BYTES)

    def digest(self, *, lfs: bool) -> str:
        """The digest of what arrived."""
        self._stream.flush()
        self._stream.seek(0)
        if lfs:
            return hashlib.file_digest(self._stream, "sha256").hexdigest()

        def sha1() -> "hashlib._Hash":
            return hashlib.sha1(blob_header(self.size_bytes), usedforsecurity=False)

        return hashlib.file_digest(self._stream, sha1).hexdigest()


def file_url(client: HubClient, dataset: str, revision: str, path: str) -> str:
    """Where the hub serves a file of a commit."""
    return f"{client.settings.endpoint}/datasets/{dataset}/resolve/{revision}/{quote(path)}"


def download(client: HubClient, url: str, file: ListedFile, body: Body) -> None:
    """Fill `body` with exactly the listed content.

    Raises `TransientDatasetError` where a later run may succeed, `DatasetError` where the hub
    keeps sending something else than it lists.
    """
    deadline = (
        time.monotonic() + client.settings.file_time_limit_s + file.size_bytes / MIN_BYTES_PER_S
    )

    def attempt() -> None:
        before_bytes = body.size_bytes
        try:
            _receive(client, url, file, body, deadline)
        except PassingError as fault:
            fault.progressed = body.size_bytes - before_bytes >= MIN_PROGRESS_BYTES
            raise
        if body.digest(lfs=file.is_lfs) != file.blob_id:
            raise _wrong_content(url, file, body)

    retrying(attempt, client.settings, client.stopped)


def _receive(client: HubClient, url: str, file: ListedFile, body: Body, deadline: float) -> None:
    if body.size_bytes > file.size_bytes:
        body.reset()
    if body.size_bytes == file.size_bytes > 0:  # all was here before a kill
        return
    headers = {"Accept-Encoding": "identity"}
    if body.size_bytes:
        headers["Range"] = f"bytes={body.size_bytes}-"
    response = client.open(url, headers, deadline)
    try:
        if response.status_code == 416:
            body.reset()
            raise PassingError(f"{shown(url)}: cannot be resumed")
        client.check_status(response, url)
        if not _continues(response, body):
            body.reset()
        announced = response.headers.get("Content-Length", "")
        plain = response.headers.get("Content-Encoding", "identity") == "identity"
        missing_bytes = file.size_bytes - body.size_bytes
        if plain and announced.isdigit() and int(announced) != missing_bytes:
            body.reset()
            body.append(next(client.chunks(response, url, deadline, 1 << 62), b"")[:_HEAD_BYTES])
            raise _wrong_content(url, file, body, announced_bytes=int(announced))
        for chunk in client.chunks(response, url, deadline, 1 << 62):
            body.append(chunk)
            if body.size_bytes > file.size_bytes:
                raise _wrong_content(url, file, body)
    finally:
        response.close()
    if body.size_bytes < file.size_bytes:
        if looks_like_html(body.head()) or not plain or parse_pointer(body.head()):
            raise _wrong_content(url, file, body)
        raise PassingError(
            f"{shown(url)}: broke off after {body.size_bytes} of {file.size_bytes} bytes"
        )


def _continues(response: requests.Response, body: Body) -> bool:
    """Whether an answer's bytes belong behind those that are here already."""
    if response.status_code != 206 or "Content-Encoding" in response.headers:
        return False
    content_range = response.headers.get("Content-Range", "")
    return content_range.startswith(f"bytes {body.size_bytes}-")


def _wrong_content(
    url: str, file: ListedFile, body: Body, announced_bytes: int | None = None
) -> PassingError:
    """Say what came in place of the file, and forget it."""
    head, size_bytes = body.head(), announced_bytes or body.size_bytes
    digest = body.digest(lfs=file.is_lfs)
    body.reset()
    final: type[DatasetError] = DatasetError
    if not head:
        final = TransientDatasetError
        what = "an empty answer came"
    elif looks_like_html(head):
        final = TransientDatasetError
        what = "a web page came (a proxy or a login page?)"
    elif parse_pointer(head):
        what = "a Git LFS pointer came; the mirror does not serve large file storage"
    elif size_bytes != file.size_bytes:
        what = f"{size_bytes} bytes came in place of {file.size_bytes}"
    else:
        what = f"content with the id {digest} came in place of {file.blob_id}"
    return PassingError(
        f"{shown(url)}: {what}; nothing was stored",
        final=final,
        max_attempts=WRONG_CONTENT_ATTEMPTS,
    )
