"""Statistics of raw per-call times in integer nanoseconds. Pure standard library.

The primary statistic is the median. Its 95% interval is a bootstrap that resamples rounds first
and samples inside them second, because calls of one round share a clock and a memory placement.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

RESAMPLES = 1000


@dataclass(frozen=True)
class Statistics:
    """Summary of one series; every time in nanoseconds."""

    samples: int
    median: int
    p05: int
    p95: int
    mad: int
    minimum: int
    maximum: int
    mean: int
    confidence95: tuple[int, int]
    round_medians: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def quantile(ordered: Sequence[int], fraction: float) -> int:
    """Linear interpolation between the two nearest of already sorted values."""
    position = (len(ordered) - 1) * fraction
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (position - low))


def median(values: Sequence[int]) -> int:
    """The median; raises `ValueError` for an empty series."""
    if not values:
        raise ValueError("no values")
    return quantile(sorted(values), 0.5)


def summarize(rounds: Mapping[int, Sequence[int]], seed: int = 0) -> Statistics | None:
    """Summarize a series given per round; None when it holds no sample.

    `seed` makes the bootstrap repeatable.
    """
    groups = [list(values) for _, values in sorted(rounds.items()) if values]
    values = sorted(value for group in groups for value in group)
    if not values:
        return None
    middle = quantile(values, 0.5)
    return Statistics(
        samples=len(values),
        median=middle,
        p05=quantile(values, 0.05),
        p95=quantile(values, 0.95),
        mad=median([abs(value - middle) for value in values]),
        minimum=values[0],
        maximum=values[-1],
        mean=round(sum(values) / len(values)),
        confidence95=_median_interval(groups, random.Random(seed)),
        round_medians=tuple(median(group) for group in groups),
    )


def _median_interval(groups: list[list[int]], generator: random.Random) -> tuple[int, int]:
    medians = []
    for _ in range(RESAMPLES):
        sample: list[int] = []
        for group in generator.choices(groups, k=len(groups)):
            sample += generator.choices(group, k=len(group))
        sample.sort()
        medians.append(quantile(sample, 0.5))
    medians.sort()
    return quantile(medians, 0.025), quantile(medians, 0.975)


def share(total: int, rounds: int, number: int) -> range:
    """The indices that belong to one round when `total` calls are spread over all rounds."""
    return range(total * number // rounds, total * (number + 1) // rounds)


def speedup(reference: Statistics | None, subject: Statistics | None) -> float | None:
    """How many times as fast as the reference; None where either was not measured."""
    if reference is None or subject is None or not subject.median:
        return None
    return reference.median / subject.median
