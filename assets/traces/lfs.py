"""Git LFS pointers: the small text files that stand for content kept elsewhere.

Format: the Git LFS specification (docs/spec.md of git-lfs): `version` first, then keys in
order, `oid sha256:<hex>` and `size <bytes>` among them, at most 1024 bytes.
"""

import re
from dataclasses import dataclass

_POINTER = re.compile(
    rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\n"
    rb"(?:[a-z0-9.-]+ [^\n]*\n)*?"
    rb"oid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>[0-9]+)\n(?:[a-z0-9.-]+ [^\n]*\n)*"
)
_MAX_POINTER_BYTES = 1024


@dataclass(frozen=True)
class LfsPointer:
    """What a pointer stands for: the content's sha256 (hex) and size."""

    sha256: str
    size_bytes: int


def parse_pointer(data: bytes) -> LfsPointer | None:
    """The pointer that these bytes are, or None for any other content."""
    if len(data) > _MAX_POINTER_BYTES:
        return None
    match = _POINTER.fullmatch(data)
    return None if match is None else LfsPointer(match["oid"].decode(), int(match["size"]))
