"""Git's own object hashes, computed from bytes: no repository and no git program needed.

Formats: "Git Internals - Git Objects" of the Git book. A blob id is the sha1 of
`blob <size>\\0<bytes>`; a tree lists its entries sorted as if folder names ended in a slash.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


def blob_id(data: bytes) -> str:
    """The git blob sha1 of a file's bytes, in hex."""
    return _object_id(blob_header(len(data)), data)


def blob_hash(size_bytes: int) -> "hashlib._Hash":
    """The hash whose digest is the blob id once a file of that size was fed to it."""
    return hashlib.sha1(blob_header(size_bytes), usedforsecurity=False)


def tree_id(blob_ids: Mapping[str, str]) -> str:
    """The git tree sha1 of a set of regular files, given as path -> blob sha1 hex.

    Raises `ValueError` if a path is a file as well as a folder.
    """
    files: dict[str, str] = {}
    folders: dict[str, dict[str, str]] = {}
    for path, blob in blob_ids.items():
        name, _, below = path.partition("/")
        if below:
            folders.setdefault(name, {})[below] = blob
        else:
            files[name] = blob
    if both := files.keys() & folders.keys():
        raise ValueError(f"{min(both)} is a file as well as a folder")
    entries = [_Entry(name.encode(), b"100644", blob) for name, blob in files.items()]
    entries += [_Entry(name.encode(), b"40000", tree_id(folders[name])) for name in folders]
    content = b"".join(entry.encoded for entry in sorted(entries, key=_order))
    return _object_id(b"tree " + str(len(content)).encode() + b"\0", content)


@dataclass(frozen=True)
class _Entry:
    name: bytes
    mode: bytes
    object_id: str

    @property
    def encoded(self) -> bytes:
        return self.mode + b" " + self.name + b"\0" + bytes.fromhex(self.object_id)


def _order(entry: _Entry) -> bytes:
    return entry.name + b"/" if entry.mode == b"40000" else entry.name


def blob_header(size_bytes: int) -> bytes:
    """What git hashes before a blob's bytes."""
    return b"blob " + str(size_bytes).encode() + b"\0"


def _object_id(header: bytes, content: bytes) -> str:
    # Not `header + content`: that would copy files of hundreds of megabytes.
    digest = hashlib.sha1(header, usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()
