"""What the worker of `kernelindex-controlled-v1` made of times, kept to read its results.

There one call's time was the process's own, and a row of calls from outside was held against it.
"""

from assets.reruns.worker.codes import reason
from assets.reruns.worker.statistics import median
from assets.reruns.worker.verdict import Series, reasons_of_timing

OUTSIDE_FACTOR = 1.6
OUTSIDE_ALLOWANCE_NS = {"cuda": 30_000, "cpu": 2_000_000}


def first_reasons_of_timing(
    candidate: Series, reference: Series, outside_ns: int, device: str, floor_ns: int | None
) -> list[dict[str, str]]:
    """Reasons from a candidate's own times, a row of calls from outside, and the roofline."""
    reasons = reasons_of_timing(candidate, reference, floor_ns)
    if outside_ns > longest_row(candidate, OUTSIDE_ALLOWANCE_NS[device]):
        said = median(candidate.device_values())
        detail = f"A row of calls took {outside_ns} ns each, the process reported {said}."
        reasons.append(reason("TIMER_DISAGREES", detail))
    return reasons


def longest_row(series: Series, allowance_ns: int) -> float:
    """Most ns per call that a row of calls may take when the reported times are true.

    The upper end of the wall times counts, not their median: launching on a host that others
    use too is slow for milliseconds at a time, and a row may fall into such a time as a whole.
    """
    wall = sorted(series.wall_values())
    upper = wall[min(len(wall) - 1, len(wall) * 95 // 100)]
    return max(upper, median(series.device_values())) * OUTSIDE_FACTOR + allowance_ns
