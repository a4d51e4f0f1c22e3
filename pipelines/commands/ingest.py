"""`kernelindex ingest`: run the ingest job and print what it did."""

from typing import Annotated

import typer
from rich.table import Table

from assets.tables.ingestion import IngestionReport
from pipelines.commands.leaderboards import print_leaderboards
from pipelines.commands.output import fail, stderr, stdout
from pipelines.settings import Settings


def ingest(
    dataset: Annotated[
        str | None,
        typer.Option(
            help="`sample`, a directory, a git clone, an archive, or "
            "hf://datasets/OWNER/NAME[@REVISION]; default: KERNELINDEX_DATASET, else the sample"
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="revision to read, 40 hex digits; default: the newest")
    ] = None,
    authors: Annotated[
        str | None, typer.Option(help="author directories to read, separated by commas")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print one JSON object as the last line")
    ] = False,
) -> None:
    """Pull a dataset revision, publish what is new and rebuild every table."""
    from pipelines.ingest import IngestError, IngestRequest, progress_on, run_ingest
    from pipelines.instance import InstanceError

    settings = Settings.from_environment()
    names = tuple(name.strip() for name in (authors or "").split(",") if name.strip())
    if authors is not None and not names:
        fail("--authors names no author")
    request = IngestRequest(dataset or settings.dataset, revision, names)
    try:
        with progress_on(stderr) as show:
            report = run_ingest(settings, request, show)
    except (IngestError, InstanceError) as error:
        fail(str(error))
    if json:
        stdout.print(report.model_dump_json(), markup=False, soft_wrap=True)
        return
    _print_report(report)
    print_leaderboards(settings)
    _print_next_steps(settings)


def _print_report(report: IngestionReport) -> None:
    table = Table(title=f"{report.dataset} @ {report.revision[:12]}", title_justify="left")
    table.add_column("documents")
    for column in ("read", "published", "known", "quarantined", "workload rows"):
        table.add_column(column, justify="right")
    for kind in report.read:
        table.add_row(
            kind,
            str(report.read[kind]),
            str(report.published[kind]),
            str(report.known[kind]),
            str(report.quarantined[kind]),
            str(report.workload_rows[kind]),
        )
    stdout.print(table)
    if report.publication is None:
        stdout.print("Nothing new: everything that was read is already published.")
    else:
        stdout.print(f"Published as {report.publication}.")
    for reason, count in sorted(report.reasons.items()):
        stdout.print(f"  {count} x {reason}  (kernelindex quarantine --explain {reason})")


def _print_next_steps(settings: Settings) -> None:
    stdout.print(f"\nThe data is in {settings.warehouse}", soft_wrap=True)
    stdout.print("Try next:")
    for command in (
        'kernelindex query "select * from leaderboard_operations"',
        "kernelindex top rmsnorm_h128",
        "make dev",
    ):
        stdout.print(f"  {command}", markup=False)
