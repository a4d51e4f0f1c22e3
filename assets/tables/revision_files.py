"""Which files each ingested revision added, changed, renamed and removed."""

from dataclasses import dataclass

import pyarrow.parquet as pq

from assets.tables.warehouse import Warehouse

_COUNTS = ("files_added", "files_changed", "files_renamed", "files_removed")


@dataclass(frozen=True)
class FileChanges:
    """Numbers of files, compared with the revision before."""

    added: int
    changed: int
    renamed: int
    removed: int

    def __str__(self) -> str:
        """`+3 ~1 -2`; a rename counts as `>1`."""
        marks = ("+", self.added), ("~", self.changed), (">", self.renamed), ("-", self.removed)
        return " ".join(f"{mark}{number}" for mark, number in marks if number)


def file_changes(warehouse: Warehouse) -> dict[str | None, FileChanges]:
    """The changes of each revision, by the identifier of its snapshot."""
    return {
        row["snapshot_id"]: FileChanges(*(row[name] for name in _COUNTS))
        for path in warehouse.files("revisions")
        for row in pq.read_table(path, columns=["snapshot_id", *_COUNTS]).to_pylist()
    }
