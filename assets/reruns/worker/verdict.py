"""From what was seen of one item to its status and reasons. Pure; no process is talked to here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .codes import Status, reason
from .outside import GRAPH, Assessment, Raw
from .processes import (
    ChildDied,
    ChildFailed,
    ChildRefused,
    ChildTampered,
    ChildTimedOut,
    ChildTooLarge,
)
from .statistics import median

#: The status that a reason code leads to. Codes that are missing here change no status.
STATUS_OF = {
    "STALE_OUTPUT": Status.REWARD_HACK,
    "STARTED_EARLY": Status.REWARD_HACK,
    "CHANGED_AFTER_CHECK": Status.REWARD_HACK,
    "UNSYNCHRONIZED_WORK": Status.REWARD_HACK,
    "MUTATED_INPUT": Status.REWARD_HACK,
    "ALIASED_INPUT": Status.REWARD_HACK,
    "LAZY_OUTPUT": Status.REWARD_HACK,
    "PATCHED_RUNTIME": Status.REWARD_HACK,
    "HARNESS_TAMPERING": Status.REWARD_HACK,
    "TIMER_DISAGREES": Status.REWARD_HACK,
    "UNFINISHED_ROW": Status.REWARD_HACK,
    "BATCHED_ROW": Status.REWARD_HACK,
    "LEFT_WORK_RUNNING": Status.REWARD_HACK,
    "FASTER_THAN_ROOFLINE": Status.REWARD_HACK,
    "WRONG_SHAPE": Status.INCORRECT_SHAPE,
    "WRONG_DEVICE": Status.INCORRECT_SHAPE,
    "WRONG_OUTPUT_COUNT": Status.INCORRECT_SHAPE,
    "WRONG_DTYPE": Status.INCORRECT_DTYPE,
    "OUT_OF_TOLERANCE": Status.INCORRECT_NUMERICAL,
    "NAN_OUTPUT": Status.INCORRECT_NUMERICAL,
    "NAN_BOTH_SIDES": Status.INCORRECT_NUMERICAL,
    "INFINITY_MISMATCH": Status.INCORRECT_NUMERICAL,
    "FAILED_RECHECK": Status.INCORRECT_NUMERICAL,
    "BUILD_FAILED": Status.COMPILE_ERROR,
    "IMPORT_FAILED": Status.COMPILE_ERROR,
    "ENTRY_POINT_MISSING": Status.COMPILE_ERROR,
    "UNSAFE_SOURCE_PATH": Status.COMPILE_ERROR,
    "UNSUPPORTED_LANGUAGE": Status.COMPILE_ERROR,
    "UNSUPPORTED_BINDING": Status.COMPILE_ERROR,
    "RAISED": Status.RUNTIME_ERROR,
    "DIED": Status.RUNTIME_ERROR,
    "MEMORY_LIMIT": Status.RUNTIME_ERROR,
    "TOO_SLOW": Status.TIMEOUT,
    "MISSING_DEPENDENCY": Status.INFRASTRUCTURE_ERROR,
    "TOOLCHAIN_MISSING": Status.INFRASTRUCTURE_ERROR,
    "REFERENCE_FAILED": Status.INFRASTRUCTURE_ERROR,
    "REFERENCE_NOT_FINITE": Status.INFRASTRUCTURE_ERROR,
    "UNSUPPORTED_COMPARISON": Status.INFRASTRUCTURE_ERROR,
    "UNSUPPORTED_WORKLOAD": Status.INFRASTRUCTURE_ERROR,
    "MISSING_TENSOR": Status.INFRASTRUCTURE_ERROR,
    "WORKER_FAILED": Status.INFRASTRUCTURE_ERROR,
    "CANCELLED_BY_SIGNAL": Status.CANCELLED,
    "DEADLINE_REACHED": Status.CANCELLED,
}

#: Where several reasons came together, the earliest of these decides.
_PRECEDENCE = (
    Status.REWARD_HACK,
    Status.INFRASTRUCTURE_ERROR,
    Status.COMPILE_ERROR,
    Status.TIMEOUT,
    Status.RUNTIME_ERROR,
    Status.INCORRECT_SHAPE,
    Status.INCORRECT_DTYPE,
    Status.INCORRECT_NUMERICAL,
    Status.CANCELLED,
)

#: A timed call with fewer matching elements than this is no unstable kernel but another one.
GROSS_MISMATCH = 0.5

LATE_ALLOWANCE_NS = 30_000
LATE_SHARE = 0.25
EVENT_GAP_ALLOWANCE_NS = 100_000
EVENT_GAP_SHARE = 0.3
#: How far a process's own clock may lie below the outside value's interval. The outside value
#: counts in any case, so a lie gains nothing. Honest kernels were seen on an H200 that took half of
#: it by their own events: on buffers that they had before, and without launching.
INSIDE_SHARE = {"cuda": 0.6, "cpu": 0.6}
INSIDE_ALLOWANCE_NS = {"cuda": 3_000, "cpu": 2_000_000}
#: A tiny kernel takes tens of microseconds; behind somebody else's work it waits for a time slice.
BUSY_NS = 1_000_000
REVEAL_FACTOR = 2.0


@dataclass
class Series:
    """Raw times of one subject in ns, by round: device mode, and wall mode with its details."""

    device: dict[int, list[int]] = field(default_factory=dict)
    wall: dict[int, list[int]] = field(default_factory=dict)
    event_gaps: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def device_values(self) -> list[int]:
        """All device times."""
        return [value for values in self.device.values() for value in values]

    def wall_values(self) -> list[int]:
        """All wall times."""
        return [value for values in self.wall.values() for value in values]


def status_for(reasons: Iterable[Mapping[str, str]]) -> Status:
    """The status that a list of reasons adds up to; PASSED when none of them forbids it."""
    found = {STATUS_OF[entry["code"]] for entry in reasons if entry["code"] in STATUS_OF}
    return next((status for status in _PRECEDENCE if status in found), Status.PASSED)


def may_become_verified(kind: str, clean: bool, note_codes: Iterable[str]) -> bool:
    """Whether a session on such a device, with these notes on its items, can verify anything."""
    return kind == "cuda" and clean and "CACHED_BUILD" not in set(note_codes)


def reason_of_failure(error: ChildFailed) -> dict[str, str]:
    """The reason for a request that a candidate's process did not answer well."""
    if isinstance(error, ChildRefused):
        known = error.kind if error.kind in STATUS_OF else "RAISED"
        return reason(known, first_line_of(error.detail))
    if isinstance(error, ChildTimedOut):
        return reason("TOO_SLOW", f"{error}.")
    if isinstance(error, ChildTooLarge):
        return reason("MEMORY_LIMIT", f"{error}.")
    if isinstance(error, ChildTampered):
        return reason("HARNESS_TAMPERING", f"{error}.")
    if isinstance(error, ChildDied):
        return reason("DIED", f"{error}.")
    return reason("WORKER_FAILED", str(error))


def reasons_of_kept(
    kept: Mapping[str, Any], reference: Mapping[str, Any]
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Reasons and notes from what a kept call did to its inputs."""
    reasons, notes = [], []
    for key, code in (("mutated", "MUTATED_INPUT"), ("aliased", "ALIASED_INPUT")):
        own = [name for name in kept[key] if name not in reference[key]]
        shared = [name for name in kept[key] if name in reference[key]]
        if own:
            reasons.append(reason(code, f"Input: {', '.join(own)}."))
        if shared:
            notes.append(reason("MUTATES_LIKE_REFERENCE", f"Input: {', '.join(shared)}."))
    return reasons, notes


def reasons_of_judgement(judged: Mapping[str, Any], timed: bool) -> list[dict[str, str]]:
    """Reasons from the referee's answer on one kept call; empty when the output was right."""
    correctness = judged["correctness"]
    if correctness["right"]:
        return []
    if judged["late_right"]:
        return [reason("UNSYNCHRONIZED_WORK", "The output became right only later.")]
    if judged["early"]:
        return [reason("STARTED_EARLY")]
    if judged["stale_of"] is not None:
        return [reason("STALE_OUTPUT")]
    if timed and correctness["matched_ratio"] < GROSS_MISMATCH:
        return [reason("CHANGED_AFTER_CHECK", _numbers(correctness))]
    reasons = [reason("FAILED_RECHECK", _numbers(correctness))] if timed else []
    for output in correctness["outputs"]:
        if output["right"]:
            continue
        name = f"Output {output['name']!r}:"
        if output["nan_reference"] and not output["nan_both"]:
            reasons.append(reason("REFERENCE_NOT_FINITE", f"{name} {output['nan_reference']}."))
        elif output["nan_both"]:
            reasons.append(reason("NAN_BOTH_SIDES", f"{name} {output['nan_both']} elements."))
        elif output["nan_output"]:
            reasons.append(reason("NAN_OUTPUT", f"{name} {output['nan_output']} elements."))
        elif output["infinity_mismatch"]:
            count = output["infinity_mismatch"]
            reasons.append(reason("INFINITY_MISMATCH", f"{name} {count} elements."))
        else:
            reasons.append(reason("OUT_OF_TOLERANCE", f"{name} {_numbers(output)}"))
    return reasons


def reasons_of_timing(
    candidate: Series, reference: Series | None, floor_ns: int | None
) -> list[dict[str, str]]:
    """Reasons from comparing a candidate's own times with each other and with the roofline."""
    reasons = []
    device, wall = median(candidate.device_values()), median(candidate.wall_values())
    late = _excess(candidate.late, reference.late if reference else [])
    if late > max(LATE_ALLOWANCE_NS, LATE_SHARE * device):
        reasons.append(reason("UNSYNCHRONIZED_WORK", f"{late} ns ran on after the end event."))
    gap = _excess(candidate.event_gaps, reference.event_gaps if reference else [])
    if gap > max(EVENT_GAP_ALLOWANCE_NS, EVENT_GAP_SHARE * wall):
        reasons.append(reason("TIMER_DISAGREES", f"Events miss {gap} of {wall} ns of wall time."))
    if floor_ns is not None and device < floor_ns:
        reasons.append(reason("FASTER_THAN_ROOFLINE", f"{device} ns; the floor is {floor_ns}."))
    return reasons


def reasons_of_row(
    judged: Mapping[str, Any], mutated_by_reference: Sequence[str]
) -> list[dict[str, str]]:
    """Reasons from what the measurer read after a row or a gated call."""
    reasons = []
    own = [name for name in judged["mutated"] if name not in mutated_by_reference]
    if own:
        reasons.append(reason("MUTATED_INPUT", f"Input: {', '.join(own)}."))
    if judged["right"]:
        return reasons
    correctness = judged["correctness"]
    share = f"{judged['wrong']} of {judged['outputs']} outputs"
    if judged.get("late"):
        detail = f"{judged['late']} of the pieces looked at were written after the answer."
        reasons.append(reason("UNFINISHED_ROW", detail))
    elif judged["unwritten"]:
        reasons.append(reason("UNFINISHED_ROW", f"{share} are wrong."))
    elif correctness["matched_ratio"] < GROSS_MISMATCH:
        reasons.append(reason("CHANGED_AFTER_CHECK", f"{share}: {_numbers(correctness)}"))
    else:
        reasons.append(reason("FAILED_RECHECK", f"{share}: {_numbers(correctness)}"))
    return reasons


def reasons_of_outside(
    raw: Raw,
    assessment: Assessment,
    inside: Series,
    device: str,
    floor_ns: int | None,
) -> list[dict[str, str]]:
    """Reasons from the times that were taken outside, and from what the process said beside them.

    A row in a graph is compared with device events, a plain call with the host's clock.
    """
    reasons = []
    value = assessment.value_ns
    if assessment.batched:
        detail = f"{value:.0f} ns in a row, {assessment.gated_ns:.0f} one by one."
        reasons.append(reason("BATCHED_ROW", detail))
    said = median(inside.device_values() if raw.kind == GRAPH else inside.wall_values())
    allowance = INSIDE_ALLOWANCE_NS[device] + INSIDE_SHARE[device] * value
    if said < assessment.interval_ns[0] - allowance:
        detail = f"It said {said} ns; outside it took {value:.0f}."
        reasons.append(reason("TIMER_DISAGREES", detail))
    if floor_ns is not None and assessment.interval_ns[1] < floor_ns:
        reasons.append(reason("FASTER_THAN_ROOFLINE", f"{value:.0f} ns; the floor is {floor_ns}."))
    return reasons


def reasons_of_idleness(found_ns: Sequence[int], usual_ns: Sequence[int]) -> list[dict[str, str]]:
    """Reasons from what a tiny kernel of the measurer's took while the process stood still."""
    usual = median(usual_ns) if usual_ns else 0
    if found_ns and median(found_ns) > usual + BUSY_NS:
        return [reason("LEFT_WORK_RUNNING", f"A tiny kernel took {median(found_ns)} ns.")]
    return []


def reasons_of_revealing(
    found_ns: Sequence[int], usual_ns: Sequence[int], size_ratio: float
) -> list[dict[str, str]]:
    """Reasons from how long a row's contents took to be written, of the usual ones' size or not.

    Where somebody begins with them before the clock does, the device is shared meanwhile.
    """
    if not found_ns or not usual_ns:
        return []
    usual = median(usual_ns) * max(1.0, size_ratio)
    if median(found_ns) <= REVEAL_FACTOR * usual + BUSY_NS:
        return []
    detail = f"Writing a row's contents took {median(found_ns)} ns; usual is {usual:.0f}."
    return [reason("LEFT_WORK_RUNNING", detail)]


def _excess(values: Sequence[int], reference: Sequence[int]) -> int:
    if not values:
        return 0
    return median(values) - (median(reference) if reference else 0)


def _numbers(correctness: Mapping[str, Any]) -> str:
    return (
        f"{correctness['matched_ratio']:.6f} of the elements match; largest errors "
        f"{correctness['max_absolute_error']:.4g} absolute, "
        f"{correctness['max_relative_error']:.4g} relative."
    )


def first_line_of(detail: str) -> str:
    """The exception's type and the first line of what it says, out of a traceback.

    In a traceback every line of the exception's own stands at the margin, and those of frames are
    indented; what a message has after its first line may be anything.
    """
    lines = detail.strip().splitlines()
    heads = [n for n, line in enumerate(lines) if line.startswith("Traceback (most recent call")]
    if not heads:
        return next((line.strip()[:500] for line in reversed(lines) if line.strip()), "")
    for line in lines[heads[-1] + 1 :]:
        if line and not line[0].isspace():
            return line.strip()[:500]
    return lines[-1].strip()[:500]
