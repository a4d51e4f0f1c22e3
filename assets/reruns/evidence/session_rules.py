"""Rules about a whole session: its machine, its state, and the trace rows beside it."""

from collections.abc import Iterator
from typing import Any

from assets.reruns.evidence.claims import Fault, ItemClaims, SessionClaims
from assets.reruns.result_documents import MachineFigures
from assets.reruns.worker.calibration import judge
from assets.reruns.worker.codes import REASONS, SCORED_STATUSES, State, Status
from assets.reruns.worker.job import shown
from assets.reruns.worker.verdict import STATUS_OF, may_become_verified

ENVIRONMENT = "environment.json"
TRACES = "traces.jsonl"
#: What only the worker could see at the time; both speak against the session.
_SEEN_THERE = frozenset({"GPU_SHARED", "GPU_MISMATCH"})


def device_is_one(session: SessionClaims) -> Iterator[Fault]:
    """Both documents describe the same device, as far as something was measured on it."""
    device = session.environment.device
    if session.result.device != device:
        yield Fault("device", "is not that of environment.json")
    if session.environment.cpu_fallback is not (device.kind == "cpu"):
        yield Fault("cpu_fallback", f"does not go with the device {device.kind}", ENVIRONMENT)
    if any(item.measured for item in session.items):
        if not device.name:
            yield Fault("device.name", "is missing", ENVIRONMENT)
        if device.l2_bytes is None:
            yield Fault("device.l2_bytes", "is missing", ENVIRONMENT)
        if not session.environment.software.get("torch"):
            yield Fault("software.torch", "is missing", ENVIRONMENT)


def calibration_follows_from_its_figures(session: SessionClaims) -> Iterator[Fault]:
    """Drift, reasons and cleanness are what the figures before and after give."""
    claimed = session.result.calibration
    device = session.environment.device
    found = judge(
        _figures(claimed.before),
        _figures(claimed.after),
        session.product,
        device.kind == "cpu",
        [{"throttle_reasons": sample.throttle_reasons} for sample in session.environment.telemetry],
        0,
    )
    if claimed.drift != found.drift:
        yield Fault("calibration.drift", f"is {claimed.drift}; the figures give {found.drift}")
    codes = [entry.code for entry in claimed.reasons]
    for number, code in enumerate(codes):
        if code not in REASONS or code in STATUS_OF:
            yield Fault(
                f"calibration.reasons[{number}].code", f"is {shown(code)}, which it cannot be"
            )
    expected = [entry["code"] for entry in found.reasons]
    if [code for code in codes if code not in _SEEN_THERE] != expected:
        yield Fault("calibration.reasons", f"are {codes}; the figures give {expected}")
    if ("GPU_MISMATCH" in codes) is not (device.mismatch is not None):
        yield Fault("calibration.reasons", "do not say of GPU_MISMATCH what the device says")
    if claimed.clean is not (not codes):
        yield Fault("calibration.clean", f"is {claimed.clean} beside the reasons {codes}")


def promise_follows_from_the_session(session: SessionClaims) -> Iterator[Fault]:
    """Whether it may become verified is what device, calibration and notes say."""
    result = session.result
    notes = (note.code for item in result.items for note in item.notes)
    expected = may_become_verified(result.device.kind, result.calibration.clean, notes)
    if result.may_become_verified is not expected:
        yield Fault("may_become_verified", f"is {result.may_become_verified}, not {expected}")


def state_goes_with_the_items(session: SessionClaims) -> Iterator[Fault]:
    """A complete session calibrated twice and finished every item; a broken one has an error."""
    result = session.result
    if result.finished_at < result.started_at:
        yield Fault("finished_at", "is before started_at")
    if (result.error is None) is (result.state is State.INFRASTRUCTURE_ERROR):
        yield Fault("error", f"does not go with the state {result.state.value}")
    if result.state is State.COMPLETE:
        if result.calibration.before is None or result.calibration.after is None:
            yield Fault("state", "is complete, without both calibrations")
        for item in session.items:
            if item.outcome.status is Status.CANCELLED:
                yield Fault(item.at("status"), "is CANCELLED in a session that is complete")


def traces_say_the_same(session: SessionClaims) -> Iterator[Fault]:
    """Every item with a score has one trace row, in order, with the item's own values."""
    scored = [item for item in session.items if item.outcome.status in SCORED_STATUSES]
    if len(scored) != len(session.traces):
        yield Fault("", f"{len(session.traces)} rows for {len(scored)} items with a score", TRACES)
        return
    for line, (item, trace) in enumerate(zip(scored, session.traces, strict=True), start=1):
        for path, expected in _expected(session, item).items():
            found: Any = trace
            for name in path.split("."):
                found = found.get(name) if isinstance(found, dict) else None
            if found != expected:
                message = f"is {shown(found)}; result.json gives {shown(expected)}"
                yield Fault(path, message, f"{TRACES}:{line}")


def _figures(found: MachineFigures | None) -> dict[str, float] | None:
    return found.model_dump() if found is not None else None


def _expected(session: SessionClaims, item: ItemClaims) -> dict[str, Any]:
    outcome = item.outcome
    performance: dict[str, Any] | None = None
    if outcome.status is Status.PASSED and outcome.statistics and outcome.reference_statistics:
        performance = {
            "latency_ms": outcome.statistics.median / 1e6,
            "reference_latency_ms": outcome.reference_statistics.median / 1e6,
            "speedup_factor": outcome.speedup,
        }
    return {
        "definition": _field(item.definition, "name"),
        "workload": _field(item.workload, "workload") or item.workload,
        "solution": _field(item.solution, "name"),
        "evaluation.status": outcome.status.value,
        "evaluation.environment.hardware": session.environment.device.name or "",
        "evaluation.performance": performance,
    }


def _field(document: Any, name: str) -> Any:
    return document.get(name) if isinstance(document, dict) else None
