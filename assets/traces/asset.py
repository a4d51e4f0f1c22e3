"""The `trace_files` asset: one dataset revision pulled into the raw store."""

from collections import Counter
from pathlib import Path
from typing import Protocol

import dagster as dg
from pydantic import Field

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.layout import kind_of
from assets.traces.progress import PullProgress
from assets.traces.pull import SAMPLE, pull
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetSnapshot, save_snapshot


class DatasetConfig(dg.Config):
    """Which dataset to ingest."""

    dataset: str = Field(
        default=SAMPLE,
        description="`sample`, a directory, a git clone, an archive, or "
        "hf://datasets/OWNER/NAME[@REVISION]",
    )
    revision: str | None = Field(
        default=None,
        description="revision to read (40 hex digits, or a branch of a hub dataset); "
        "default: the newest, or the digest of a directory's files",
    )
    name: str | None = Field(
        default=None,
        description="which dataset a local copy is: OWNER/NAME, or hf://datasets/OWNER/NAME; "
        "default: what its dataset.json or its origin says",
    )
    authors: list[str] = Field(
        default=[], description="author directories to read; empty for all of them"
    )
    with_tensors: bool = Field(
        default=False, description="also fetch the tensor files that workloads name"
    )


class PullingWarehouse(Protocol):
    """What of a warehouse pulling needs."""

    snapshots: Path

    @property
    def store(self) -> RawStore:
        """The raw bytes."""

    def staging(self, name: str) -> Path:
        """The folder of a run in progress."""


class WarehouseProvider(Protocol):
    """A resource that opens the warehouse."""

    def open(self) -> PullingWarehouse:
        """The warehouse, ready for use."""


@dg.asset(
    group_name="traces",
    kinds={"python", "file"},
    owners=["team:index"],
    pool="warehouse",
    retry_policy=dg.RetryPolicy(
        max_retries=3, delay=30, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
    ),
)
def trace_files(
    context: dg.AssetExecutionContext,
    config: DatasetConfig,
    warehouse: dg.ResourceParam[WarehouseProvider],
) -> dg.MaterializeResult[None]:
    """Raw files of one dataset revision, kept once per content digest."""
    opened = warehouse.open()
    try:
        snapshot = pull(
            config.dataset,
            revision=config.revision,
            authors=config.authors or None,
            store=opened.store,
            name=config.name,
            with_tensors=config.with_tensors,
            progress=_Log(context),
        )
    except TransientDatasetError as error:
        raise dg.Failure(error.message, allow_retries=True) from error
    except DatasetError as error:
        raise dg.Failure(error.message, allow_retries=False) from error
    save_snapshot(snapshot, opened.staging(context.run.run_id) / "snapshot.json")
    save_snapshot(snapshot, opened.snapshots / f"{snapshot.snapshot_id[7:23]}.json")
    return dg.MaterializeResult(
        metadata=_metadata(snapshot), data_version=dg.DataVersion(snapshot.snapshot_id)
    )


class _Log:
    """Says how far pulling is, at every thousandth file."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._logged = context, 0

    def __call__(self, progress: PullProgress) -> None:
        if progress.files_done >= self._logged + 1000:
            self._logged = progress.files_done
            self._context.log.info(
                f"files_pulled files={progress.files_done}/{progress.files_total}"
            )


def _metadata(snapshot: DatasetSnapshot) -> dict[str, dg.MetadataValue]:
    kinds = Counter(kind_of(file.path) or "other" for file in snapshot.files)
    table = "| kind | files |\n|---|---:|\n" + "\n".join(
        f"| {kind} | {count} |" for kind, count in sorted(kinds.items())
    )
    return {
        "dataset": dg.MetadataValue.text(snapshot.dataset),
        "revision": dg.MetadataValue.text(snapshot.revision),
        "location": dg.MetadataValue.text(snapshot.location),
        "files": dg.MetadataValue.md(table),
        "size_bytes": dg.MetadataValue.int(sum(file.size_bytes for file in snapshot.files)),
        "problems": dg.MetadataValue.int(len(snapshot.problems)),
        "dagster/row_count": dg.MetadataValue.int(len(snapshot.files)),
    }
