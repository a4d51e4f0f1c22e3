"""From what was seen of one item to its status and reasons. Pure; no process is talked to here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .codes import Status, reason
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
OUTSIDE_FACTOR = 1.6
OUTSIDE_ALLOWANCE_NS = {"cuda": 30_000, "cpu": 2_000_000}


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
        return reason(known, _last_line(error.detail))
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
    candidate: Series,
    reference: Series | None,
    outside_ns: int | None,
    outside_allowance_ns: int,
    floor_ns: int | None,
) -> list[dict[str, str]]:
    """Reasons from comparing a candidate's times with each other, with the clock outside its
    process (`outside_ns` per call of an uninterrupted row) and with the roofline."""
    reasons = []
    device, wall = median(candidate.device_values()), median(candidate.wall_values())
    late = _excess(candidate.late, reference.late if reference else [])
    if late > max(LATE_ALLOWANCE_NS, LATE_SHARE * device):
        reasons.append(reason("UNSYNCHRONIZED_WORK", f"{late} ns ran on after the end event."))
    gap = _excess(candidate.event_gaps, reference.event_gaps if reference else [])
    if gap > max(EVENT_GAP_ALLOWANCE_NS, EVENT_GAP_SHARE * wall):
        reasons.append(reason("TIMER_DISAGREES", f"Events miss {gap} of {wall} ns of wall time."))
    longest_ns = longest_row(candidate, outside_allowance_ns)
    if outside_ns is not None and outside_ns > longest_ns:
        detail = f"A row of calls took {outside_ns} ns each, the process reported {device}."
        reasons.append(reason("TIMER_DISAGREES", detail))
    if floor_ns is not None and device < floor_ns:
        reasons.append(reason("FASTER_THAN_ROOFLINE", f"{device} ns; the floor is {floor_ns}."))
    return reasons


def longest_row(series: Series, allowance_ns: int) -> float:
    """Most ns per call that a row of calls may take when the reported times are true.

    The upper end of the wall times counts, not their median: launching on a host that others
    use too is slow for milliseconds at a time, and a row may fall into such a time as a whole.
    """
    wall = sorted(series.wall_values())
    upper = wall[min(len(wall) - 1, len(wall) * 95 // 100)]
    return max(upper, median(series.device_values())) * OUTSIDE_FACTOR + allowance_ns


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


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:500] if lines else ""
