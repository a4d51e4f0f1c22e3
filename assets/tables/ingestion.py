"""What one ingestion did, as numbers that add up."""

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from assets.manifests.staging import StagedCounts
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Publication, Warehouse

# The table whose rows a kind of document becomes; a workload file has only workload rows.
_TABLE_OF_KIND = {"definition": "operations", "solution": "implementations", "trace": "runs"}
_FOLDER = "reports"


class IngestionReport(BaseModel):
    """Documents by kind: read = published + known + quarantined + workload rows.

    `read_again` are runs of later revisions that were published once more because this one arrived
    late: their solutions have an earlier identity now.
    """

    model_config = ConfigDict(frozen=True)

    dataset: str
    revision: str
    publication: str | None
    read: dict[str, int]
    published: dict[str, int]
    known: dict[str, int]
    quarantined: dict[str, int]
    workload_rows: dict[str, int]
    reasons: dict[str, int]
    new_rows: dict[str, int]
    read_again: int = 0
    controlled_reruns: int = 0
    """Runs that ship with the dataset as results of reruns, and were published after its own."""

    def save(self, warehouse_root: Path, name: str) -> None:
        """Keep the report of a run."""
        folder = warehouse_root / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(self.model_dump_json(indent=2))

    @classmethod
    def load(cls, warehouse_root: Path, name: str) -> "IngestionReport":
        """The report of a run.

        Raises:
            WarehouseError: where the run has none.
        """
        path = warehouse_root / _FOLDER / f"{name}.json"
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise WarehouseError(f"{path}: that run has published nothing") from error


def report_of(
    counts: StagedCounts, record: Publication | None, warehouse: Warehouse
) -> IngestionReport:
    """Split what was read into new and known."""
    new_rows = {name: file.rows for name, file in record.tables.items()} if record else {}
    kinds = sorted(kind for kind in counts.read if counts.read[kind])
    published = {
        kind: _rows_of_revision(warehouse, record, _TABLE_OF_KIND.get(kind, ""), counts.revision)
        for kind in kinds
    }
    quarantined = {kind: counts.quarantined.get(kind, 0) for kind in kinds}
    workload_rows = {kind: counts.workload_rows.get(kind, 0) for kind in kinds}
    return IngestionReport(
        dataset=counts.dataset,
        revision=counts.revision,
        publication=record.publication_id if record else None,
        read={kind: counts.read[kind] for kind in kinds},
        published=published,
        known={
            kind: counts.read[kind] - published[kind] - quarantined[kind] - workload_rows[kind]
            for kind in kinds
        },
        quarantined=quarantined,
        workload_rows=workload_rows,
        reasons=counts.reasons,
        new_rows=new_rows,
        read_again=new_rows.get("runs", 0) - published.get("trace", 0),
    )


def _rows_of_revision(
    warehouse: Warehouse, record: Publication | None, table: str, revision: str
) -> int:
    """The new rows of a table that were read at a revision.

    A publication has rows of later revisions too where those were read again.
    """
    if record is None or table not in record.tables:
        return 0
    folder = warehouse.folder_of(record.publication_id)
    return sum(_rows_of(folder / file.name, revision) for file in record.tables[table].files)


def _rows_of(path: Path, revision: str) -> int:
    with pq.ParquetFile(path) as file:
        # Lists have columns of another name in the file, so this is not the place in the schema.
        [column] = [
            number
            for number in range(file.metadata.num_columns)
            if file.schema.column(number).path == "revision"
        ]
        rows = 0
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            limits = group.column(column).statistics
            if limits is not None and limits.has_min_max and limits.min == limits.max:
                rows += group.num_rows if limits.min == revision else 0
            else:
                values = file.read_row_group(number, columns=["revision"]).column(0)
                rows += pc.sum(pc.equal(values, revision)).as_py() or 0
        return rows
