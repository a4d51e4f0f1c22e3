"""What one ingestion did, as numbers that add up."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from assets.manifests.staging import StagedCounts
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Publication

# The table whose rows a kind of document becomes; a workload file has only workload rows.
_TABLE_OF_KIND = {"definition": "operations", "solution": "implementations", "trace": "runs"}
_FOLDER = "reports"


class IngestionReport(BaseModel):
    """Documents by kind: read = published + known + quarantined + workload rows."""

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


def report_of(counts: StagedCounts, record: Publication | None) -> IngestionReport:
    """Split what was read into new and known."""
    new_rows = {name: file.rows for name, file in record.tables.items()} if record else {}
    kinds = sorted(kind for kind in counts.read if counts.read[kind])
    published = {kind: new_rows.get(_TABLE_OF_KIND.get(kind, ""), 0) for kind in kinds}
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
    )
