"""The `manifests` asset: one snapshot normalized into staged rows."""

from pathlib import Path
from typing import Protocol

import dagster as dg

from assets.manifests.normalize import (
    Known,
    Normalized,
    NormalizeProgress,
    normalize,
    normalize_again,
)
from assets.manifests.staging import load_staged_snapshot, save_normalized, staged_rows
from assets.traces.errors import DatasetError
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetSnapshot


class NormalizingWarehouse(Protocol):
    """What of a warehouse normalization needs."""

    @property
    def store(self) -> RawStore:
        """The raw bytes."""

    def staging(self, name: str) -> Path:
        """The folder of a run in progress."""

    def known(self, snapshot: DatasetSnapshot) -> Known:
        """What was published of the snapshot's dataset."""

    def later_snapshots(self, snapshot: DatasetSnapshot) -> list[DatasetSnapshot]:
        """Ingested snapshots of the same dataset at other, later revisions."""


class WarehouseProvider(Protocol):
    """A resource that opens the warehouse."""

    def open(self) -> NormalizingWarehouse:
        """The warehouse, ready for use."""


@dg.asset(
    name="staged_manifests",
    group_name="manifests",
    kinds={"python", "parquet"},
    owners=["team:index"],
    deps=["trace_files"],
    pool="warehouse",
)
def manifests(
    context: dg.AssetExecutionContext, warehouse: dg.ResourceParam[WarehouseProvider]
) -> dg.MaterializeResult[None]:
    """KernelIndex manifests of one dataset revision, as staged rows; odd items in quarantine."""
    opened = warehouse.open()
    staging = opened.staging(context.run.run_id)
    try:
        snapshot = load_staged_snapshot(staging)
        known = opened.known(snapshot)
        outcome = normalize(
            snapshot, opened.store, staged_rows(staging), known, progress=_Log(context)
        )
        if outcome.moved:
            later = opened.later_snapshots(snapshot)
            context.log.info(f"identities_moved solutions={len(outcome.moved)} again={len(later)}")
            normalize_again(later, opened.store, staged_rows(staging), known, outcome.moved)
    except DatasetError as error:
        raise dg.Failure(error.message, allow_retries=False) from error
    save_normalized(outcome, staging)
    return dg.MaterializeResult(metadata=_metadata(outcome))


class _Log:
    """Says how far reading is, at every tenth of the files."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._tenths = context, 0

    def __call__(self, progress: NormalizeProgress) -> None:
        tenths = 10 * progress.files_done // max(progress.files_total, 1)
        if tenths > self._tenths:
            self._tenths = tenths
            self._context.log.info(
                f"traces_read files={progress.files_done}/{progress.files_total} "
                f"documents={progress.documents}"
            )


def _metadata(outcome: Normalized) -> dict[str, dg.MetadataValue]:
    counts = outcome.counts
    kinds = sorted(counts.read)
    table = "| kind | read | quarantined | workload rows | unchanged |\n|---|---:|---:|---:|---:|\n"
    table += "\n".join(
        f"| {kind} | {counts.read[kind]} | {counts.quarantined[kind]} | "
        f"{counts.workload_rows[kind]} | {counts.unchanged[kind]} |"
        for kind in kinds
    )
    reasons = "| reason | items |\n|---|---:|\n" + "\n".join(
        f"| {reason} | {count} |" for reason, count in counts.reasons.most_common()
    )
    return {
        "dataset": dg.MetadataValue.text(outcome.snapshot.dataset),
        "revision": dg.MetadataValue.text(outcome.snapshot.revision),
        "documents": dg.MetadataValue.md(table),
        "quarantine": dg.MetadataValue.md(reasons if counts.reasons else "nothing"),
        "dagster/row_count": dg.MetadataValue.int(counts.read.total()),
    }
