"""`kernelindex ingest`: run the ingest job and print what it did."""

from typing import Annotated

import typer

from assets.answers.lookup import short
from assets.answers.units import count_text
from assets.tables.ingestion import IngestionReport
from assets.tables.reader import open_database
from assets.tables.warehouse import Warehouse
from pipelines.commands.aside import say_what_is_set_aside
from pipelines.commands.leaderboards import print_leaderboards
from pipelines.commands.output import add_row, fail, program, say, show, stderr, stdout, table
from pipelines.commands.replay import replay_all
from pipelines.settings import Settings, SettingsError


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
    name: Annotated[
        str | None,
        typer.Option(
            help="which dataset a local copy is: OWNER/NAME, or hf://datasets/OWNER/NAME; "
            "default: what its dataset.json or its origin says"
        ),
    ] = None,
    authors: Annotated[
        str | None, typer.Option(help="author directories to read, separated by commas")
    ] = None,
    with_tensors: Annotated[
        bool, typer.Option("--with-tensors", help="also fetch the tensor files of workloads")
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="make every publication again from the raw store, with no network"
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="print one JSON object as the last line")
    ] = False,
) -> None:
    """Pull a dataset revision, publish what is new and rebuild every table."""
    from pipelines.ingest import IngestError, IngestRequest, progress_on, run_ingest
    from pipelines.instance import InstanceError

    settings = Settings.from_environment()
    if replay:
        if dataset or revision or name or authors or with_tensors:
            fail("--replay makes again what was ingested; it takes no other option than --json")
        replay_all(json)
        return
    names = tuple(name.strip() for name in (authors or "").split(",") if name.strip())
    if authors is not None and not names:
        fail("--authors names no author")
    given_name = name or (settings.dataset_name if dataset is None else None)
    request = IngestRequest(
        dataset or settings.dataset, revision, names, with_tensors, name=given_name
    )
    try:
        with progress_on(stderr) as progress:
            report = run_ingest(settings, request, progress, say)
    except (IngestError, InstanceError, SettingsError) as error:
        fail(str(error))
    say_what_is_set_aside(Warehouse(settings.warehouse))
    if json:
        stdout.print(report.model_dump_json(), markup=False, soft_wrap=True)
        return
    _print_report(report)
    if report.controlled_reruns:
        counted = count_text(report.controlled_reruns, "controlled rerun")
        show(f"{counted} of the sample on an H200 published too.")
    print_leaderboards(settings)
    _print_next_steps(settings)


def _print_report(report: IngestionReport) -> None:
    show(f"{report.dataset} at {report.revision[:12]}", "bold")
    made = table(
        [
            ("documents", "left"),
            ("read", "right"),
            ("published", "right"),
            ("known", "right"),
            ("quarantined", "right"),
        ]
    )
    for kind in report.read:
        counts = (report.read, report.published, report.known, report.quarantined)
        if report.workload_rows[kind] < report.read[kind]:
            add_row(made, f"{kind}s", *(f"{count[kind]:,}" for count in counts))
    stdout.print(made)
    workload_rows = sum(report.workload_rows.values())
    if workload_rows:
        show(f"{count_text(workload_rows, 'more row')} describe workloads, which traces refer to.")
    if report.read_again:
        show(
            f"{count_text(report.read_again, 'run')} of later revisions published again: their "
            "solutions are known from this one."
        )
    if report.publication is None:
        show("Nothing new: everything that was read is already published.")
    else:
        show(f"Published as {report.publication}.")
    if report.reasons:
        show(f"{count_text(sum(report.reasons.values()), 'item')} in quarantine, by reason:")
        for reason, count in sorted(report.reasons.items(), key=lambda item: (-item[1], item[0])):
            show(f"  {count:>6,}  {reason}")
        worst = max(report.reasons, key=lambda reason: report.reasons[reason])
        show(f"  {program()} quarantine --explain {worst}")
    show()


def _print_next_steps(settings: Settings) -> None:
    show(f"The data is in {settings.warehouse}")
    show("Try next:")
    with open_database(settings.warehouse) as database:
        operations = database.execute(
            "select operation from leaderboard_operations "
            "order by runs_eligible desc, operation limit 1"
        ).fetchall()
        records = database.execute(
            "select run_digest from records order by since desc, run_digest limit 1"
        ).fetchall()
    if operations:
        show(f"  {program()} top {operations[0][0]}")
    if records:
        show(f"  {program()} show {short(records[0][0])}")
    show(f'  {program()} query "from leaderboard_solutions select solution, wins"')
