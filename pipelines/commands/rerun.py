"""`kernelindex rerun`: measure published runs again under the controlled protocol.

Nothing here starts by itself: every command that measures needs a written reason.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from assets.answers.lookup import short
from assets.answers.units import count_text
from assets.reruns.bundles import BundleError
from assets.reruns.collection import Prepared, prepare_bundle
from assets.reruns.errors import RerunRefusedError, ResultRefusedError
from assets.reruns.lane import (
    bundles_folder,
    chosen_launcher,
    jobs,
    measure,
    publish_job,
    publish_result,
    worker_file,
)
from assets.reruns.lane import reconcile as reconcile_lane
from assets.reruns.launchers.drive import WorkerEvent
from assets.reruns.launchers.job_directory import JobInUseError
from assets.reruns.launchers.launcher import LauncherError
from assets.reruns.requests import RerunRequest
from assets.reruns.results import Imported, ImportedRun
from assets.reruns.worker.build import build_worker
from pipelines.commands.index import Json, errors_as_lines, open_warehouse
from pipelines.commands.output import (
    add_row,
    fail,
    no,
    print_json,
    program,
    say,
    show,
    stdout,
    table,
)

rerun = typer.Typer(
    help="Measure published runs again on a GPU, under the controlled protocol.",
    no_args_is_help=True,
)

Runs = Annotated[list[str] | None, typer.Argument(help="run digests, or their unique beginnings")]
Group = Annotated[
    str | None, typer.Option("--group", help="comparison key: all its implementations")
]
Operation = Annotated[
    str | None, typer.Option("--operation", help="operation of --solution, --top")
]
Solutions = Annotated[
    list[str] | None,
    typer.Option("--solution", help="a solution of the operation; may be repeated"),
]
Workload = Annotated[str | None, typer.Option("--workload", help="identifier of one workload")]
Top = Annotated[int | None, typer.Option("--top", help="first solutions of the leaderboard")]
Reason = Annotated[str, typer.Option("--reason", help="why; kept with the results")]
Samples = Annotated[
    int, typer.Option("--samples", help="timed calls; fewer than 200 verify nothing")
]
Deadline = Annotated[float, typer.Option("--deadline-s", help="longest time of the whole job")]
Tensors = Annotated[
    list[Path] | None, typer.Option("--tensors", help="dataset folder that holds tensor files")
]
Runner = Annotated[
    str | None, typer.Option("--runner", help="who measured; replication counts different names")
]


@rerun.command("bundle")
def bundle(
    reason: Reason,
    out: Annotated[Path, typer.Option("--out", help="folder to make, to be carried to the GPU")],
    runs: Runs = None,
    group: Group = None,
    operation: Operation = None,
    solution: Solutions = None,
    workload: Workload = None,
    top: Top = None,
    samples: Samples = 200,
    deadline_s: Deadline = 3600.0,
    tensors: Tensors = None,
    json: Json = False,
) -> None:
    """Write a job bundle and the worker into one folder, for a machine with a GPU."""
    selection = _selection(runs, group, operation, solution, workload, top)
    request = _request(selection=selection, reason=reason, samples=samples, deadline_s=deadline_s)
    with _refusals():
        warehouse = open_warehouse()
        prepared = prepare_bundle(warehouse, request, out / "bundle", tensors or ())
        worker = build_worker(out / "kernelindex_worker.pyz")
    if json:
        print_json({"bundle": str(prepared.bundle.root), **_prepared(prepared)})
        return
    _print_prepared(prepared)
    show(f"On the machine with the GPU, in {out.name}:")
    show(f"  python3 {worker.name} run bundle --out result")
    show("Back here:")
    show(f"  {program()} rerun import {out}")


@rerun.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="the folder that `rerun bundle` made")],
    result: Annotated[
        Path | None, typer.Option("--result", help="result bundle; default: FOLDER/result")
    ] = None,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Check a result bundle and publish its runs, samples and verdicts."""
    with _refusals():
        imported = publish_result(
            open_warehouse(), folder / "bundle", result or folder / "result", runner
        )
    _answer(imported, json)


@rerun.command("run")
def run(
    reason: Reason,
    runs: Runs = None,
    group: Group = None,
    operation: Operation = None,
    solution: Solutions = None,
    workload: Workload = None,
    top: Top = None,
    launcher: Annotated[
        str | None, typer.Option("--launcher", help="local, ssh or slurm; default: the setting")
    ] = None,
    gpu: Annotated[str, typer.Option("--gpu", help="GPU index; cpu is for trials only")] = "0",
    samples: Samples = 200,
    deadline_s: Deadline = 3600.0,
    tensors: Tensors = None,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Bundle, measure with a launcher, and import, in one go."""
    selection = _selection(runs, group, operation, solution, workload, top)
    request = _request(
        selection=selection,
        reason=reason,
        launcher=launcher,
        gpu=gpu,
        samples=samples,
        deadline_s=deadline_s,
    )
    with _refusals():
        warehouse = open_warehouse()
        chosen = chosen_launcher(warehouse, request.launcher)
        folder = _fresh_folder(bundles_folder(warehouse))
        prepared = prepare_bundle(warehouse, request, folder, tensors or ())
        if not json:
            _print_prepared(prepared)
        outcome = measure(chosen, prepared.bundle, request.gpu, _tell)
        if outcome.result is None:
            no(f"job {outcome.job_id} is {outcome.status.state}: {outcome.status.detail}")
        imported = publish_job(warehouse, outcome.job_id, runner)
    _answer(imported, json)


@rerun.command("reconcile")
def reconcile(json: Json = False) -> None:
    """Explain and repair what killed processes left, and publish results that were finished."""
    with _refusals():
        findings, published = reconcile_lane(open_warehouse())
    if json:
        listed = [
            {"subject": f.subject, "found": str(f.kind), "detail": f.detail, "repaired": f.repaired}
            for f in findings
        ]
        print_json({"findings": listed, "results": published})
        return
    for finding in findings:
        mark = "repaired" if finding.repaired else "left"
        show(f"{finding.subject}: {finding.kind} ({mark}) {finding.detail}".rstrip())
    for job_id, what in published.items():
        show(f"{job_id}: {what}")
    if not findings and not published:
        show("Nothing was left behind.")


@rerun.command("status")
def status(json: Json = False) -> None:
    """List the jobs of this warehouse."""
    with _refusals():
        lines = jobs(open_warehouse())
    if json:
        print_json([vars(line) for line in lines])
        return
    made = table(
        [("job", "left"), ("prepared", "left"), ("state", "left"), ("published", "left"),
         ("detail", "fold")]
    )  # fmt: skip
    for line in lines:
        published = "yes" if line.imported else "no"
        add_row(made, line.job_id, line.prepared_at, line.state, published, line.detail)
    stdout.print(made)


@rerun.command("worker")
def worker() -> None:
    """Build the worker as one file below the warehouse and print where it is."""
    with _refusals():
        show(str(worker_file(open_warehouse())))


@contextmanager
def _refusals() -> Iterator[None]:
    with errors_as_lines():
        try:
            yield
        except RerunRefusedError as error:
            fail(error.message)
        except (BundleError, ResultRefusedError, LauncherError, JobInUseError) as error:
            fail(str(error))


def _selection(
    runs: list[str] | None,
    group: str | None,
    operation: str | None,
    solutions: list[str] | None,
    workload: str | None,
    top: int | None,
) -> dict[str, Any]:
    ways: list[dict[str, Any]] = []
    if runs:
        ways.append({"kind": "runs", "runs": runs})
    if group:
        ways.append({"kind": "group", "comparison_key": group})
    if solutions:
        ways.append(
            {
                "kind": "solutions",
                "operation": operation,
                "solutions": solutions,
                "workload": workload,
            }
        )
    if top is not None:
        ways.append({"kind": "top", "operation": operation, "top": top})
    if len(ways) != 1:
        fail("name what to measure in one way: RUN…, --group, --operation with --solution or --top")
    if (solutions or top is not None) and not operation:
        fail("--solution and --top need --operation")
    return ways[0]


def _request(**fields: Any) -> RerunRequest:
    try:
        return RerunRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        fail(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _fresh_folder(parent: Path) -> Path:
    number = len(list(parent.glob("*"))) + 1 if parent.is_dir() else 1
    while (folder := parent / f"{number:06d}").exists():
        number += 1
    return folder


def _prepared(prepared: Prepared) -> dict[str, Any]:
    return {
        "bundle_id": prepared.bundle.bundle_id,
        "runs": [run.run_digest for run in prepared.chosen],
        "left_out": list(prepared.left_out),
    }


def _print_prepared(prepared: Prepared) -> None:
    show(f"{count_text(len(prepared.chosen), 'run')} in the bundle {prepared.bundle.root}", "bold")
    for message in prepared.left_out:
        say(f"left out: {message}")


def _tell(event: WorkerEvent) -> None:
    if event.name == "item_finished":
        say(f"{event.fields.get('item_id')}: {event.fields.get('status')}")
    elif event.name != "item_started":
        say(event.line)


def _answer(imported: Imported, json: bool) -> None:
    if json:
        print_json(
            {
                "publication": imported.publication.publication_id
                if imported.publication
                else None,
                "clean_calibration": imported.clean,
                "unscored": list(imported.unscored),
                "runs": [_as_json(run) for run in imported.runs],
            }
        )
        return
    made = table(
        [("run", "left"), ("solution", "fold"), ("outcome", "left"), ("median us", "right"),
         ("reported us", "right"), ("ratio", "right"), ("verdict", "left"), ("evidence", "left")]
    )  # fmt: skip
    for run in imported.runs:
        ratio = run.comparison.ratio
        add_row(
            made,
            short(run.run_digest),
            run.solution,
            run.status,
            f"{run.median_ns / 1000:.2f}" if run.median_ns is not None else "",
            f"{run.reported_ns / 1000:.2f}" if run.reported_ns is not None else "",
            f"{ratio:.3f}" if ratio is not None else "",
            run.comparison.verdict,
            run.evidence_level,
        )
    stdout.print(made)
    for message in imported.unscored:
        say(f"no score: {message}")
    if not imported.clean:
        say("the calibration was not clean: nothing of this session is verified")
    if imported.publication is None:
        show("Nothing new: this result was published before.")
    else:
        show(f"Published as {imported.publication.publication_id}.")


def _as_json(run: ImportedRun) -> dict[str, Any]:
    return {
        "run_digest": run.run_digest,
        "solution": run.solution,
        "definition": run.definition,
        "status": run.status,
        "median_ns": run.median_ns,
        "reported_ns": run.reported_ns,
        "verdict": str(run.comparison.verdict),
        "ratio": run.comparison.ratio,
        "evidence_level": run.evidence_level,
        "unverified_because": list(run.unverified_because),
    }
