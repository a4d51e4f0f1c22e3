"""Local files whose bytes need not be read again, told by what the file system says of them.

As git's index does: a file with the size, inode and times of last time has the bytes of last
time. A file that changed within the last moments before it was noted is never trusted, since its
times may not tell two changes apart. Deleting the note costs one full read.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from assets.traces.raw_store import RawStore
from assets.traces.snapshot import write_atomically

_FILE = "local-files.json"
_RACY_NS = 2 * 10**9


@dataclass(frozen=True)
class SeenFile:
    """The content that a local file had."""

    digest: str
    blob_id: str
    size_bytes: int


class SeenFiles:
    """The note of one raw store; safe for threads until it is saved."""

    def __init__(self, store: RawStore) -> None:
        self._store = store
        self._path = store.root / _FILE
        self._entries: dict[str, list[object]] = self._read()
        self._changed = False

    def _read(self) -> dict[str, list[object]]:
        try:
            entries = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}

    def get(self, file: Path) -> SeenFile | None:
        """The content of a resolved path, if it is that of last time and the store still has it."""
        entry = self._entries.get(str(file))
        state = file.stat()
        if entry is None or entry[:-2] != _state(state):
            return None
        digest, blob_id = str(entry[-2]), str(entry[-1])
        if not self._store.has(digest):
            return None
        return SeenFile(digest, blob_id, state.st_size)

    def note(
        self,
        file: Path,
        before: os.stat_result,
        digest: str,
        blob_id: str,
        now_ns: int | None = None,
    ) -> None:
        """Remember what was read from a resolved path; `before` is its state before that."""
        now_ns = time.time_ns() if now_ns is None else now_ns
        settled = now_ns - max(before.st_mtime_ns, before.st_ctime_ns) > _RACY_NS
        if settled and _state(file.stat()) == _state(before):
            self._entries[str(file)] = [*_state(before), digest, blob_id]
            self._changed = True

    def save(self) -> None:
        """Keep the note for the next pull."""
        if self._changed:
            write_atomically(self._path, json.dumps(self._entries).encode())


def _state(stat: os.stat_result) -> list[object]:
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev]
