"""Which files each ingested revision added, changed, renamed and removed."""

from dataclasses import dataclass

from assets.tables.database import published_rows
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
    with warehouse.connect() as connection:
        rows = published_rows(connection, warehouse, "revisions")
        found = rows.project(", ".join(("snapshot_id", *_COUNTS))).fetchall()
    return {snapshot_id: FileChanges(*counts) for snapshot_id, *counts in found}
