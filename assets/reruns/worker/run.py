"""Run one job bundle from start to result: build, lock the GPU, calibrate, measure, write.

This process never imports torch and never runs code of the bundle; see `nursery.py`.
"""

import os
import platform
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import calibration as calibrations
from . import results
from .builds import build_all
from .codes import ExitCode, State, Status, reason
from .convention import infer_convention
from .documents import (
    DocumentError,
    problem_of,
    reference_source,
    size_bytes,
    solution_of,
)
from .isolation import become_supervisor, bubblewrap, clean_environment
from .job import Item, JobBundle
from .lock import GpuBusy, gpu_lock
from .machine import Machine, calibrate
from .moments import utc_now
from .processes import ChildFailed, Nursery, Stop, Stopped
from .roofline import product_named, roofline
from .session import Session, mark_stopped
from .statistics import median
from .subjects import Build, Candidate, Group, Subject, Surroundings
from .tolerance import NOT_COMPARABLE, tolerance_rule
from .verdict import status_for

SUPPORTED_LANGUAGES = ("python", "triton", "cuda")
_SPARE_FILE_BYTES = 1 << 30
_COOL_DOWN_S = 1.0


@dataclass(frozen=True)
class Options:
    """What the command line chose: `sandbox` is none or bwrap; a build cache is for trials."""

    lock_folder: Path
    sandbox: str = "none"
    keep_network: bool = False
    build_cache: Path | None = None


@dataclass
class Progress:
    """What a run has found so far; the result bundle is written from this."""

    candidates: list[Candidate] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    referees: dict[str, Subject] = field(default_factory=dict)
    before: dict[str, float] | None = None
    after: dict[str, float] | None = None


def run_bundle(
    bundle: JobBundle,
    out: Path,
    machine: Machine,
    options: Options,
    stop: Stop,
    emit: Callable[..., None],
) -> int:
    """Run the bundle and write its result to `out`; returns the exit code.

    Raises `lock.GpuBusy` when another worker holds the GPU, before anything was measured.
    """
    with gpu_lock(options.lock_folder, machine.lock_name):
        pass  # held by someone else: say so before anything is built
    started_at = utc_now()
    emit("started", bundle_id=bundle.bundle_id, items=len(bundle.items), device=machine.kind)
    become_supervisor()
    progress = Progress()
    scratch = Path(tempfile.mkdtemp(prefix="kernelindex-rerun-"))
    state, error, exit_code = State.COMPLETE, None, ExitCode.RESULT_WRITTEN
    try:
        try:
            _prepare_and_measure(bundle, progress, machine, options, scratch, stop, emit)
        except Stopped as stopped:
            state = State.CANCELLED if stopped.signal_number else State.DEADLINE
            exit_code = 128 + stopped.signal_number if stopped.signal_number else exit_code
            mark_stopped(progress.candidates, stopped)
        except Exception as failure:
            if isinstance(failure, GpuBusy):
                raise
            state, error = State.INFRASTRUCTURE_ERROR, describe(failure)
            exit_code = ExitCode.INFRASTRUCTURE
            for candidate in progress.candidates:
                if not candidate.measured and status_for(candidate.reasons) is Status.PASSED:
                    candidate.fail(reason("WORKER_FAILED", describe(failure)[:500]))
        finished = {status_for(candidate.reasons) for candidate in progress.candidates}
        if state is not State.CANCELLED or finished != {Status.CANCELLED}:
            _write(bundle, out, progress, machine, scratch, state, started_at, error)
        emit("finished", state=state.value, result=str(out))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return exit_code


def describe(failure: Exception) -> str:
    """A failure as text; of one that nobody foresaw, with the way to it."""
    if isinstance(failure, (ChildFailed, OSError)):
        return str(failure)
    return "".join(traceback.format_exception(failure))


def _prepare_and_measure(
    bundle: JobBundle,
    progress: Progress,
    machine: Machine,
    options: Options,
    scratch: Path,
    stop: Stop,
    emit: Callable[..., None],
) -> None:
    prepare(bundle, progress, scratch)
    settings = {
        "device": machine.kind,
        "flush_factor": bundle.protocol.flush_factor,
        "launch_runway_us": bundle.protocol.launch_runway_us,
        "capability": machine.facts.get("compute_capability"),
        "sandbox": options.sandbox,
        "keep_network": options.keep_network,
    }
    environment = clean_environment(os.environ, scratch, machine.visible)
    sandbox = bubblewrap(scratch) if options.sandbox == "bwrap" else []
    nursery = Nursery(environment, scratch, scratch / "nursery.log", stop, sandbox)
    try:
        timeout_s = bundle.limits.per_run_timeout_s
        cache = options.build_cache
        builds = build_all(progress.candidates, nursery, settings, scratch, timeout_s, cache)
        with gpu_lock(options.lock_folder, machine.lock_name):
            _measure(bundle, progress, machine, builds, settings, scratch, nursery, emit)
    finally:
        nursery.close()


def prepare(bundle: JobBundle, progress: Progress, scratch: Path) -> None:
    """Read every item's documents and sort the items into groups."""
    logs = scratch / "logs"
    logs.mkdir()
    for item in bundle.items:
        log = logs / f"{item.item_id}.txt"
        progress.candidates.append(Candidate(item, None, None, log))
    for candidate in progress.candidates:
        item = candidate.item
        try:
            group = _group(bundle, item, progress.groups)
            group.candidates.append(candidate)
            candidate.solution = solution_of(bundle.read_document(item.solution))
            if candidate.solution.language not in SUPPORTED_LANGUAGES:
                language = candidate.solution.language
                raise DocumentError("UNSUPPORTED_LANGUAGE", f"The language is {language!r}.")
            candidate.convention = infer_convention(
                candidate.solution,
                [spec.name for spec in group.problem.inputs],
                [spec.name for spec in group.problem.outputs],
            )
        except DocumentError as error:
            candidate.fail(reason(error.code, error.detail))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            candidate.fail(reason("UNSUPPORTED_WORKLOAD", f"The documents are odd: {error!r}."))


def _group(bundle: JobBundle, item: Item, groups: dict[str, Group]) -> Group:
    tensors = {tensor.name: str(bundle.root / tensor.path) for tensor in item.tensors}
    key = " ".join(
        [item.definition.digest, item.workload.digest, *(t.digest for t in item.tensors)]
    )
    if key not in groups:
        definition = bundle.read_document(item.definition)
        workload = bundle.read_document(item.workload)
        problem = problem_of(definition, workload, tensors)
        if problem.op_type.split("_")[0] in NOT_COMPARABLE:
            raise DocumentError("UNSUPPORTED_COMPARISON", f"The family is {problem.op_type}.")
        groups[key] = Group(
            problem=problem,
            reference=reference_source(definition),
            rule=tolerance_rule(problem.op_type, workload),
            roofline=roofline(problem, None, 0),
            candidates=[],
            builds={},
        )
    return groups[key]


def _measure(
    bundle: JobBundle,
    progress: Progress,
    machine: Machine,
    builds: dict[str, Build],
    settings: dict[str, Any],
    scratch: Path,
    nursery: Nursery,
    emit: Callable[..., None],
) -> None:
    """Calibrate, measure group after group, calibrate again."""
    progress.before = calibrate(nursery, scratch, settings, machine)
    emit("calibrated", when="before", values=progress.before)
    product = product_named(str(machine.facts.get("name", "")))
    for whole in progress.groups.values():
        whole.roofline = roofline(whole.problem, product, int(machine.facts["l2_bytes"]))
        whole.builds = builds
        largest = sum(size_bytes(spec.shape, spec.dtype) for spec in whole.problem.outputs)
        around = Surroundings(
            nursery=nursery,
            scratch=scratch,
            protocol=bundle.protocol,
            limits=bundle.limits,
            seeds=bundle.seeds,
            settings={**settings, "file_bytes": 2 * largest + _SPARE_FILE_BYTES},
            emit=emit,
            observe=machine.observe,
        )
        for part in _portions(whole, bundle.protocol.candidates_at_once):
            session = Session(around, part)
            try:
                session.measure()
            finally:
                if session.referee is not None:
                    for candidate in part.candidates:
                        progress.referees[candidate.item.item_id] = session.referee
                _report(part, emit)
    if machine.kind == "cuda":
        time.sleep(_COOL_DOWN_S)
    progress.after = calibrate(nursery, scratch, settings, machine)
    emit("calibrated", when="after", values=progress.after)


def _portions(group: Group, size: int) -> Iterator[Group]:
    """The group in parts that fit on the device together, each measured with the reference."""
    for start in range(0, len(group.candidates), size):
        part = group.candidates[start : start + size]
        yield Group(group.problem, group.reference, group.rule, group.roofline, part, group.builds)


def _report(group: Group, emit: Callable[..., None]) -> None:
    for candidate in group.candidates:
        status = status_for(candidate.reasons)
        if status is Status.PASSED and not candidate.measured:
            continue  # stopped in the middle
        values = candidate.subject.series.device_values() if candidate.subject else []
        emit(
            "item_finished",
            item_id=candidate.item.item_id,
            status=status.value,
            median_ns=median(values) if candidate.measured and values else None,
            reasons=[entry["code"] for entry in candidate.reasons],
        )


def _write(
    bundle: JobBundle,
    out: Path,
    progress: Progress,
    machine: Machine,
    scratch: Path,
    state: State,
    started_at: str,
    error: str | None,
) -> None:
    facts = {"kind": machine.kind, **machine.facts}
    calibration = calibrations.judge(
        progress.before,
        progress.after,
        product_named(str(facts.get("name", ""))),
        machine.kind == "cpu",
        machine.telemetry,
        machine.other_processes,
    )
    if "mismatch" in facts:
        found = [*calibration.reasons, reason("GPU_MISMATCH")]
        calibration = calibrations.Calibration(
            calibration.before, calibration.after, calibration.drift, False, found
        )
    environment = {
        "device": facts,
        "software": machine.software,
        "operating_system": f"{platform.system()} {platform.release()}",
        "kernel_version": platform.version(),
        "cpu": {"cores": os.cpu_count(), "architecture": platform.machine()},
        "telemetry": machine.telemetry,
        "cpu_fallback": machine.kind == "cpu",
    }
    homes = [(str(scratch), "<scratch>"), (str(bundle.root), "<bundle>"), (str(Path.home()), "~")]

    def scrub(text: str) -> str:
        for place, shown in homes:
            text = text.replace(place, shown) if len(place) > 1 else text
        return text

    group_of = {
        candidate.item.item_id: group
        for group in progress.groups.values()
        for candidate in group.candidates
    }
    items = [
        results.item_result(
            bundle,
            candidate,
            group_of.get(candidate.item.item_id),
            progress.referees.get(candidate.item.item_id),
            environment,
            scrub,
        )
        for candidate in progress.candidates
    ]
    results.write_result(
        out,
        bundle,
        state,
        started_at,
        items,
        _reference_rows(progress),
        environment,
        calibration,
        scrub(error) if error else None,
    )


def _reference_rows(progress: Progress) -> Iterator[dict[str, Any]]:
    """The reference's samples, once for each candidate that was measured beside it."""
    for item_id, referee in progress.referees.items():
        for row in referee.rows:
            yield {"item_id": item_id, **row}
