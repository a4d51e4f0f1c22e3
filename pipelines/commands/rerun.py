"""`kernelindex rerun`: measure published runs again under the controlled protocol.

Nothing here starts by itself: every command that measures needs a written reason.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from assets.reruns.bundles import BundleError
from assets.reruns.collection import Prepared, prepare_bundle
from assets.reruns.errors import Refusal, RerunRefusedError, ResultRefusedError
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
from assets.reruns.launchers.job import JobState
from assets.reruns.launchers.job_directory import DuplicateJobError, JobInUseError
from assets.reruns.launchers.launcher import LauncherError
from assets.reruns.requests import RerunRequest
from assets.reruns.worker.build import FILE_NAME, build_worker
from assets.tables.warehouse import Warehouse
from pipelines.commands.index import Json, errors_as_lines, open_warehouse
from pipelines.commands.output import (
    add_row,
    fail,
    no,
    print_json,
    program,
    show,
    stdout,
    table,
)
from pipelines.commands.rerun_answer import answer, prepared_as_json, print_prepared, tell

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
    int, typer.Option("--samples", help="timed calls; with fewer than 200 it is a trial")
]
Deadline = Annotated[float, typer.Option("--deadline-s", help="longest time of the whole job")]
Tensors = Annotated[
    list[Path] | None, typer.Option("--tensors", help="dataset folder that holds tensor files")
]
Runner = Annotated[
    str | None, typer.Option("--runner", help="who measured; replication counts different names")
]


_BUNDLE = "bundle"
_RESULT = "result"
_OPTIONS = {
    "runs": "RUN",
    "comparison_key": "--group",
    "solutions": "--solution",
    "deadline_s": "--deadline-s",
}
"""What the command line calls a field of a request, where not by its name."""
_WRONG_INPUT = (Refusal.IS_A_RERUN, Refusal.TOO_MANY_ITEMS, Refusal.LAUNCHER_NOT_CONFIGURED)
"""Refusals that no other data would change; of the others the answer is no."""


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
        prepared = _hand_over(open_warehouse(), request, tensors or (), out)
    if json:
        print_json({"bundle": str(out / _BUNDLE), **prepared_as_json(prepared)})
        return
    print_prepared(prepared, str(out / _BUNDLE))
    show(f"On the machine with the GPU, in {out.name}:")
    show(f"  python3 {FILE_NAME} run {_BUNDLE} --out {_RESULT}")
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
    found = result or folder / _RESULT
    if not (folder / _BUNDLE).is_dir():
        fail(f"{folder}: no job bundle in it; give the folder that `rerun bundle` made")
    if not found.is_dir():
        fail(f"{found}: no result bundle here; run the worker first, or name it with --result")
    with _refusals():
        imported = publish_result(open_warehouse(), folder / _BUNDLE, found, runner)
    answer(imported, json)


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
            print_prepared(prepared, str(prepared.bundle.root))
        outcome = measure(chosen, prepared.bundle, request.gpu, tell)
        if outcome.result is None:
            no(f"job {outcome.job_id} is {outcome.status.state}: {outcome.status.detail}")
        imported = publish_job(warehouse, outcome.job_id, runner)
    answer(imported, json)


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
    """List the jobs of this warehouse: where each stands, and whether its result is published."""
    with _refusals():
        lines = jobs(open_warehouse())
    if json:
        print_json([vars(line) for line in lines])
        return
    if not lines:
        show("No job was ever launched here.")
        return
    made = table([("job", "left"), ("prepared", "left"), ("state", "left"), ("published", "left")])
    for line in lines:
        published = "a trial" if line.trial else "yes" if line.imported else "no"
        add_row(made, line.job_id, line.prepared_at, line.state, published)
    stdout.print(made)
    for line in lines:
        if line.detail and line.state != JobState.FINISHED:
            show(f"{line.job_id}: {line.detail}")


@rerun.command("worker")
def worker(json: Json = False) -> None:
    """Build the worker as one file below the warehouse and print where it is."""
    with _refusals():
        made = worker_file(open_warehouse())
    if json:
        print_json({"worker": str(made)})
        return
    show(str(made))


@contextmanager
def _refusals() -> Iterator[None]:
    with errors_as_lines():
        try:
            yield
        except RerunRefusedError as error:
            if error.refusal in _WRONG_INPUT:
                fail(error.message)
            no(error.message, error.candidates)
        except ResultRefusedError as error:
            no(f"refused: {error}")
        except (LauncherError, JobInUseError) as error:
            no(str(error))
        except (BundleError, DuplicateJobError) as error:
            fail(str(error))


def _hand_over(
    warehouse: Warehouse, request: RerunRequest, tensors: Sequence[Path], out: Path
) -> Prepared:
    """The bundle and the worker at `out`, which appears by one rename."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        fail(f"{out}: already there; name a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        prepared = prepare_bundle(warehouse, request, staging / _BUNDLE, tensors)
        build_worker(staging / FILE_NAME)
        staging.chmod(0o755)
        staging.rename(out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return prepared


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
        named = {"operation": operation, "solutions": solutions, "workload": workload}
        ways.append({"kind": "solutions", **named})
    if top is not None:
        ways.append({"kind": "top", "operation": operation, "top": top})
    if len(ways) != 1:
        fail("name what to measure in one way: RUN…, --group, --operation with --solution or --top")
    if (solutions or top is not None) and not operation:
        fail("--solution and --top need --operation")
    # An option that would change nothing was meant to change something.
    if operation and not (solutions or top is not None):
        fail("--operation needs --solution or --top")
    if workload and not solutions:
        fail("--workload needs --solution")
    return ways[0]


def _request(**fields: Any) -> RerunRequest:
    try:
        return RerunRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = [str(part) for part in first["loc"] if isinstance(part, str)][-1]
        fail(f"{_OPTIONS.get(name, f'--{name}')}: {first['msg']}")


def _fresh_folder(parent: Path) -> Path:
    return parent / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{token_hex(4)}"
