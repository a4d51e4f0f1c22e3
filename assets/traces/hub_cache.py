"""What was learned of a dataset of the hub: the commit behind each name, and listings by commit.

A commit's listing never changes, so it is asked for once. Small files under the raw store;
one that is missing or unreadable only costs a request.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Selection:
    """Which part of a commit a pull takes; by default all but tensors."""

    authors: tuple[str, ...] | None = None
    with_tensors: bool = False

    @property
    def key(self) -> str:
        """A short name that differs between selections; empty for the default."""
        if self == Selection():
            return ""
        text = json.dumps([self.authors, self.with_tensors])
        return "-" + hashlib.sha256(text.encode()).hexdigest()[:16]


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

    def pulled(self, revision: str, selection: Selection) -> HeadAnswer | None:
        """The commit a name stood for when this selection of it was last pulled completely.

        Where it never was, the commit of the last pull of everything.
        """
        exact = _read(self._pulled_file(revision, selection), HeadAnswer)
        return exact or _read(self._pulled_file(revision, Selection()), HeadAnswer)

    def keep_pulled(self, revision: str, selection: Selection, head: HeadAnswer) -> None:
        """Remember that a selection of a name's commit was pulled completely."""
        self._write(self._pulled_file(revision, selection), head)

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

    def _pulled_file(self, revision: str, selection: Selection) -> Path:
        return self._folder / f"pulled-{quote(revision, safe='')}{selection.key}.json"

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
