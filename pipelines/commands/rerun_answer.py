"""What `kernelindex rerun` says of prepared bundles and imported results, as text and as JSON."""

from collections import Counter
from itertools import groupby
from typing import Any

from assets.answers.lookup import short
from assets.answers.units import count_text, latency_text
from assets.reruns.collection import Prepared
from assets.reruns.launchers.drive import WorkerEvent
from assets.reruns.result_rows import ImportedRun
from assets.reruns.results import Imported
from pipelines.commands.output import add_row, no, print_json, say, show, stdout, table


def prepared_as_json(prepared: Prepared) -> dict[str, Any]:
    """The bundle's identifier, its runs, and why others of the selection are not in it."""
    return {
        "bundle_id": prepared.bundle.bundle_id,
        "runs": [run.run_digest for run in prepared.chosen],
        "left_out": list(prepared.left_out),
    }


def print_prepared(prepared: Prepared, where: str) -> None:
    """How many runs are in the bundle, and what was left out."""
    show(f"{count_text(len(prepared.chosen), 'run')} in the bundle {where}", "bold")
    for message in prepared.left_out:
        say(f"left out: {message}")


def tell(event: WorkerEvent) -> None:
    """One line of progress on stderr."""
    if event.name == "item_finished":
        say(f"{event.fields.get('item_id')}: {event.fields.get('status')}")
    elif event.name != "item_started":
        say(event.line)


def answer(imported: Imported, json: bool) -> None:
    """The verdicts of one result, operation by operation; exit code 1 where nothing has a score."""
    if json:
        print_json(_as_json(imported))
    else:
        _print(imported)
    if not imported.has_score:
        no(f"nothing was scored: {imported.fault or 'see above'}")


def _print(imported: Imported) -> None:
    for definition, runs in groupby(imported.runs, key=lambda run: run.definition):
        _print_runs(definition, list(runs), bool(imported.trial))
    for message in imported.unscored:
        show(f"no score: {message}")
    if not imported.has_score:
        return
    if imported.trial:
        show("This was a trial. It is published, ranked and offered nowhere, because:")
        for trial in imported.trial:
            show(f"  {trial}: {trial.explanation}")
        return
    verified = sum(not run.unverified_because for run in imported.runs)
    show(f"{verified} of {count_text(len(imported.runs), 'run')} verified")
    reasons = sorted({reason for run in imported.runs for reason in run.unverified_because})
    if reasons:
        show(f"unverified because: {', '.join(reasons)}")
    if imported.publication is None:
        show("Nothing new: this result was published before.")
    else:
        show(f"Published as {imported.publication.publication_id}.")


def _print_runs(definition: str, runs: list[ImportedRun], trial: bool) -> None:
    # The digest of a trial names nothing that could be looked up.
    made = table(
        [
            ("solution", "cut"),
            ("reported", "right"),
            ("measured" if trial else "controlled", "right"),
            ("ratio", "right"),
            ("verdict", "left"),
            *([] if trial else [("evidence", "left"), ("run", "left")]),
        ],
        title=definition,
    )
    for run in runs:
        passed = run.status == "passed"
        ratio = run.comparison.ratio
        add_row(
            made,
            _short_name(run),
            latency_text(run.reported_ns),
            latency_text(run.median_ns),
            f"{ratio:.2f}x" if ratio is not None else "",
            run.comparison.verdict,
            *(
                []
                if trial
                else [(run.evidence_level or "") if passed else "", short(run.run_digest)[:8]]
            ),
        )
    stdout.print(made)
    failed = Counter((_short_name(run), run.status) for run in runs if run.status != "passed")
    for (name, status), number in failed.items():
        show(f"  not passed: {name}: {count_text(number, 'run')} {status}")


def _short_name(run: ImportedRun) -> str:
    """The solution's name without the words that it has in common with the definition's."""
    shared = 0
    for name, definition in zip(run.solution, f"{run.definition}_", strict=False):
        if name != definition:
            break
        shared += 1
    return run.solution[run.solution.rfind("_", 0, shared) + 1 :]


def _as_json(imported: Imported) -> dict[str, Any]:
    publication = imported.publication
    return {
        "publication": publication.publication_id if publication else None,
        "trial": [str(reason) for reason in imported.trial],
        "clean_calibration": imported.clean,
        "fault": imported.fault,
        "unscored": list(imported.unscored),
        "runs": [_run_as_json(run, bool(imported.trial)) for run in imported.runs],
    }


def _run_as_json(run: ImportedRun, trial: bool) -> dict[str, Any]:
    return {
        "run_digest": None if trial else run.run_digest,
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
