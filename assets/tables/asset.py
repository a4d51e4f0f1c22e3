"""The `publication` asset: staged rows made a publication."""

import shutil
from typing import Protocol

import dagster as dg

from assets.manifests.staging import load_normalized, staged_rows
from assets.tables.errors import WarehouseError
from assets.tables.ingestion import IngestionReport, report_of
from assets.tables.publication import PublicationRequest, publish
from assets.tables.settled import settle
from assets.tables.warehouse import Warehouse
from assets.traces.errors import DatasetError


class WarehouseProvider(Protocol):
    """A resource that opens the warehouse."""

    def open(self) -> Warehouse:
        """The warehouse, ready for use."""


@dg.asset(
    group_name="tables",
    kinds={"parquet"},
    owners=["team:index"],
    deps=["staged_manifests"],
    pool="warehouse",
)
def publication(
    context: dg.AssetExecutionContext, warehouse: dg.ResourceParam[WarehouseProvider]
) -> dg.MaterializeResult[None]:
    """New manifests of one dataset revision, published as one atomic directory of Parquet."""
    opened = warehouse.open()
    staging = opened.staging(context.run.run_id)
    try:
        counts = load_normalized(staging)
        record = publish(
            opened,
            staged_rows(staging),
            PublicationRequest(
                kind="ingest",
                dataset=counts.dataset,
                revision=counts.revision,
                snapshot_id=counts.snapshot_id,
            ),
        )
    except (DatasetError, WarehouseError) as error:
        raise dg.Failure(error.message, allow_retries=False) from error
    settle(opened, counts)
    report = report_of(counts, record, opened)
    report.save(opened.root, context.run.run_id)
    shutil.rmtree(staging)
    return dg.MaterializeResult(metadata=_metadata(report))


def _metadata(report: IngestionReport) -> dict[str, dg.MetadataValue]:
    kinds = sorted(report.read)
    documents = (
        "| kind | read | published | known | quarantined | workload rows |\n"
        "|---|---:|---:|---:|---:|---:|\n"
    ) + "\n".join(
        f"| {kind} | {report.read[kind]} | {report.published[kind]} | {report.known[kind]} | "
        f"{report.quarantined[kind]} | {report.workload_rows[kind]} |"
        for kind in kinds
    )
    tables = "| table | new rows |\n|---|---:|\n" + "\n".join(
        f"| {table} | {rows} |" for table, rows in sorted(report.new_rows.items())
    )
    quarantine = "| reason | items |\n|---|---:|\n" + "\n".join(
        f"| {reason} | {count} |" for reason, count in sorted(report.reasons.items())
    )
    return {
        "publication": dg.MetadataValue.text(report.publication or "nothing new"),
        "documents": dg.MetadataValue.md(documents),
        "new_rows": dg.MetadataValue.md(tables),
        "quarantine": dg.MetadataValue.md(quarantine if report.reasons else "nothing"),
        "dagster/row_count": dg.MetadataValue.int(sum(report.new_rows.values())),
    }
