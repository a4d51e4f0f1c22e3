"""The site's folder: each file appears whole, and one that would not change is not touched.

The folder's record (`site-files.json`) names every file of the last build. It is how a folder is
known to be a site before anything is written into it, and how pages are found whose subject is
gone: those are replaced by a note, since somebody may have linked to them.
"""

import json
import os
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from assets.tables.errors import WarehouseError

RECORD = "site-files.json"


class SiteError(WarehouseError):
    """A folder that a site cannot be written into."""


@dataclass
class Written:
    """What a build did to the folder: files by fate, and their size in bytes altogether."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    size_bytes: int = 0

    @property
    def files(self) -> int:
        """Files that the site consists of."""
        return self.written + self.unchanged


class SiteFolder:
    """A folder that a site is written into."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.counts = Written()
        self._earlier = _files_of(root)
        self._now: set[str] = set()
        self._folders: set[Path] = set()
        if not (root / RECORD).exists():
            # A first build that dies must not leave a folder that the next one refuses.
            self._write_record(frozenset())

    def write(self, address: str, content: str) -> None:
        """Write a file unless it has this content already.

        Raises:
            SiteError: a file that cannot be written.
        """
        data = content.encode("utf-8", "replace")
        self._now.add(address)
        self.counts.size_bytes += len(data)
        if self._write(self.root / address, data):
            self.counts.written += 1
        else:
            self.counts.unchanged += 1

    def finish(self, note: Callable[[str], str]) -> Written:
        """Replace pages that are no more by a note, remove other files, and write the record."""
        gone = set()
        for address in sorted(self._earlier - self._now):
            path = self.root / address
            if address.endswith(".html"):
                gone.add(address)
                self._write(path, note(address).encode())
            else:
                path.unlink(missing_ok=True)
            self.counts.removed += 1
        self._write_record(gone)
        return self.counts

    def _write_record(self, gone: Set[str]) -> None:
        record = {"files": sorted(self._now), "gone": sorted(gone)}
        self._write(self.root / RECORD, json.dumps(record, indent=0).encode())

    def _write(self, path: Path, data: bytes) -> bool:
        try:
            if path.read_bytes() == data:
                return False
        except (FileNotFoundError, NotADirectoryError):
            pass
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            if path.parent not in self._folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(path.parent)
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise SiteError(f"{path}: cannot be written ({error.strerror or error})") from error
        return True


def _files_of(root: Path) -> set[str]:
    """Files of the last build; an absent or empty folder has none."""
    record = root / RECORD
    if record.is_file():
        try:
            content = json.loads(record.read_bytes())
            return {str(name) for part in ("files", "gone") for name in content[part]}
        except (ValueError, KeyError, TypeError) as error:
            raise SiteError(f"{record}: is damaged; remove {root} and build it anew") from error
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise SiteError(f"{root}: is no site and not empty; name another folder with --output")
    return set()
