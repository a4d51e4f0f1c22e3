"""Scales of a plot's axes: where a value lies, and which ticks say so."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from assets.answers.units import latency_text

Kind = Literal["linear", "log"]
Quantity = Literal["number", "latency_ns", "time", "share"]

_DAY_S = 86_400


@dataclass(frozen=True)
class Axis:
    """What an axis shows; `label` names the quantity with its unit."""

    label: str
    kind: Kind = "linear"
    quantity: Quantity = "number"


@dataclass(frozen=True)
class Scale:
    """An axis fitted to values, from `low` to `high`."""

    axis: Axis
    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high end."""
        if self.axis.kind == "log":
            span = math.log(self.high) - math.log(self.low)
            return (math.log(value) - math.log(self.low)) / span
        return (value - self.low) / (self.high - self.low)

    def tick_text(self, value: float) -> str:
        """A tick's value as people read it."""
        if self.axis.quantity == "latency_ns":
            number, _, unit = latency_text(value).partition(" ")
            number = number.rstrip("0").rstrip(".") if "." in number else number
            return f"{number} {unit}"
        if self.axis.quantity == "time":
            return _time_text(datetime.fromtimestamp(value, UTC), self.high - self.low)
        if self.axis.quantity == "share":
            return f"{value:.0%}"
        return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _time_text(at: datetime, span_s: float) -> str:
    """A time as precise as the span of the axis asks for."""
    if span_s > 3 * _DAY_S:
        return f"{at:%Y-%m-%d}"
    if span_s > 10 * 60:
        return f"{at:%m-%d %H:%M}"
    text = f"{at:%H:%M:%S.%f}"
    return text[:8] if span_s > 10 else text[:12]


def fitted(axis: Axis, values: list[float]) -> Scale:
    """The axis over these values, widened so that none lies on the edge.

    Raises:
        ValueError: no value, or one that a logarithm does not take.
    """
    low, high = min(values), max(values)
    if axis.kind == "log":
        if low <= 0:
            raise ValueError("a logarithmic axis has positive values only")
        low, high = low / 1.3, high * 1.3
        return Scale(axis, low, high, _log_ticks(low, high))
    if axis.quantity == "share":
        return Scale(axis, 0, 1, (0, 0.25, 0.5, 0.75, 1))
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1
    if axis.quantity == "time":
        return Scale(axis, low - margin, high + margin, _even_ticks(low, high, 3))
    low = 0 if low >= 0 and low < high / 2 else low - margin
    high += margin
    return Scale(axis, low, high, _round_ticks(low, high))


def _even_ticks(low: float, high: float, steps: int) -> tuple[float, ...]:
    if low == high:
        return (low,)
    return tuple(low + (high - low) * step / steps for step in range(steps + 1))


def _round_ticks(low: float, high: float) -> tuple[float, ...]:
    rough = (high - low) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.ceil(low / step)
    return tuple(number * step for number in range(first, math.floor(high / step) + 1))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    decades = math.log10(high / low)
    factors = (1, 2, 5) if decades < 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    inside = tuple(tick for tick in ticks if low <= tick <= high)
    # One tick says nothing of the distance between two values.
    return inside if len(inside) > 2 else _round_ticks(low, high)
