"""The files by which the stages of one ingestion hand over to each other."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from assets.manifests.normalize import Normalized
from assets.traces.errors import DatasetError
from assets.traces.snapshot import DatasetSnapshot, load_snapshot, save_snapshot

_SNAPSHOT = "snapshot.json"
_NORMALIZED = "normalized.json"


class StagedCounts(BaseModel):
    """What normalization found, by kind of document, as publication needs it."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    revision: str
    snapshot_id: str
    read: dict[str, int]
    quarantined: dict[str, int]
    workload_rows: dict[str, int]
    reasons: dict[str, int]
    newest_trace_at: datetime | None


def staged_rows(staging: Path) -> Path:
    """Where the Parquet parts lie."""
    return staging / "rows"


def save_staged_snapshot(snapshot: DatasetSnapshot, staging: Path) -> None:
    """Hand a snapshot to the next stage."""
    save_snapshot(snapshot, staging / _SNAPSHOT)


def load_staged_snapshot(staging: Path) -> DatasetSnapshot:
    """The snapshot that this run pulled.

    Raises:
        DatasetError: where this run pulled none.
    """
    if not (staging / _SNAPSHOT).is_file():
        raise DatasetError(
            "this run has pulled no dataset; launch the job `ingest`, which runs every stage"
        )
    return load_snapshot(staging / _SNAPSHOT)


def save_normalized(outcome: Normalized, staging: Path) -> None:
    """Hand the counts to the next stage."""
    counts = StagedCounts(
        dataset=outcome.snapshot.dataset,
        revision=outcome.snapshot.revision,
        snapshot_id=outcome.snapshot.snapshot_id,
        read=dict(outcome.counts.read),
        quarantined=dict(outcome.counts.quarantined),
        workload_rows=dict(outcome.counts.workload_rows),
        reasons=dict(outcome.counts.reasons),
        newest_trace_at=outcome.newest_trace_at,
    )
    (staging / _NORMALIZED).write_text(counts.model_dump_json())


def load_normalized(staging: Path) -> StagedCounts:
    """The counts of this run.

    Raises:
        DatasetError: where this run normalized nothing.
    """
    try:
        return StagedCounts.model_validate_json((staging / _NORMALIZED).read_bytes())
    except (OSError, ValidationError) as error:
        raise DatasetError(
            "this run has normalized no dataset; launch the job `ingest`, which runs every stage"
        ) from error
