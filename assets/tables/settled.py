"""What the last ingestion of each dataset came to: the same snapshot costs nothing again."""

import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from assets.manifests.normalize import Counts
from assets.manifests.rows import PARSER_VERSION
from assets.manifests.staging import StagedCounts
from assets.tables.warehouse import Warehouse
from assets.traces.snapshot import DatasetSnapshot, write_atomically


class _Settled(BaseModel):
    model_config = ConfigDict(frozen=True)

    parser_version: str
    last_publication: str | None
    counts: StagedCounts


def settle(warehouse: Warehouse, counts: StagedCounts) -> None:
    """Note that a snapshot is wholly published."""
    path = _path(warehouse, counts.dataset)
    path.parent.mkdir(parents=True, exist_ok=True)
    settled = _Settled(
        parser_version=PARSER_VERSION,
        last_publication=_last_publication(warehouse, counts.dataset),
        counts=counts,
    )
    write_atomically(path, settled.model_dump_json().encode())


def settled_counts(warehouse: Warehouse, snapshot: DatasetSnapshot) -> Counts | None:
    """The counts of a snapshot if it was the last of its dataset to be ingested, by these rules."""
    try:
        settled = _Settled.model_validate_json(_path(warehouse, snapshot.dataset).read_bytes())
    except (OSError, ValidationError):
        return None
    if (
        settled.counts.snapshot_id != snapshot.snapshot_id
        or settled.parser_version != PARSER_VERSION
        or settled.last_publication != _last_publication(warehouse, snapshot.dataset)
    ):
        return None
    return Counts(
        read=Counter(settled.counts.read),
        quarantined=Counter(settled.counts.quarantined),
        reasons=Counter(settled.counts.reasons),
        workload_rows=Counter(settled.counts.workload_rows),
    )


def _path(warehouse: Warehouse, dataset: str) -> Path:
    return warehouse.root / "settled" / f"{re.sub(r'[^A-Za-z0-9._-]', '_', dataset)}.json"


def _last_publication(warehouse: Warehouse, dataset: str) -> str | None:
    of_dataset = (
        record.publication_id for record in warehouse.publications() if record.dataset == dataset
    )
    return max(of_dataset, default=None)
