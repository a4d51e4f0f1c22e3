"""How a pull says where it stands, for progress bars and logs."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PullProgress:
    """State of a running pull.

    `files_done` counts files that are in the store, `files_known` those of them that needed no
    reading or download because their content was there before. Totals are 0 while listing.
    """

    phase: Literal["list", "fetch"]
    files_done: int
    files_known: int
    files_total: int
    size_bytes_done: int
    size_bytes_total: int
    path: str = ""
