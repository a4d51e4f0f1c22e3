"""What was learned of a dataset of the hub: the commit behind each name, and listings by commit.

A commit's listing never changes, so it is asked for once. Small files under the raw store;
one that is missing or unreadable only costs a request.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

import pyarrow as pa
from pydantic import BaseModel, ValidationError

from assets.traces.hub_listing import HeadAnswer, Listing
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import write_atomically

MAX_LISTINGS = 32
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")
Model = TypeVar("Model", bound=BaseModel)


class HubCache:
    """Answers of one endpoint about one dataset."""

    def __init__(self, store: RawStore, endpoint: str, dataset: str) -> None:
        host = _UNSAFE.sub("_", urlsplit(endpoint).netloc + urlsplit(endpoint).path)
        self._folder = store.root / "hub" / host / dataset.replace("/", "--")

    def head(self, revision: str) -> HeadAnswer | None:
        """The last answer to which commit a name stands for."""
        return _read(self._head_file(revision), HeadAnswer)

    def keep_head(self, revision: str, head: HeadAnswer) -> None:
        """Remember which commit a name stands for."""
        self._write(self._head_file(revision), head)

    def pulled(self, revision: str) -> HeadAnswer | None:
        """The commit a name stood for when it was last pulled completely."""
        return _read(self._pulled_file(revision), HeadAnswer)

    def keep_pulled(self, revision: str, head: HeadAnswer) -> None:
        """Remember that a name's commit was pulled completely."""
        self._write(self._pulled_file(revision), head)

    def listing(self, revision: str) -> Listing | None:
        """The files of a commit, if they were listed before."""
        return _read(self._listing_file(revision), Listing, _decompress)

    def keep_listing(self, listing: Listing) -> None:
        """Remember the files of a commit; only the newest listings are kept."""
        self._folder.mkdir(parents=True, exist_ok=True)
        data = pa.Codec("zstd").compress(listing.model_dump_json().encode(), asbytes=True)
        write_atomically(self._listing_file(listing.revision), data)
        listings = sorted(
            self._folder.glob("listing-*.json.zst"), key=lambda path: path.stat().st_mtime
        )
        for old in listings[:-MAX_LISTINGS]:
            old.unlink(missing_ok=True)

    def _head_file(self, revision: str) -> Path:
        return self._folder / f"head-{quote(revision, safe='')}.json"

    def _pulled_file(self, revision: str) -> Path:
        return self._folder / f"pulled-{quote(revision, safe='')}.json"

    def _listing_file(self, revision: str) -> Path:
        return self._folder / f"listing-{revision}.json.zst"

    def _write(self, path: Path, model: BaseModel) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, model.model_dump_json(by_alias=True).encode())


def _read(path: Path, model: type[Model], decode: Callable[[bytes], bytes] = bytes) -> Model | None:
    try:
        return model.model_validate_json(decode(path.read_bytes()))
    except (OSError, ValidationError):  # absent or torn: it is asked for again
        return None


def _decompress(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        text: bytes = stream.read()
    return text
