"""What follows from times that were taken outside a solution's process. Pure standard library.

Holds the raw times of one subject and every figure that is derived from them, so that whoever
imports a result can derive them again. How the times are taken is in `measurer.py`.

Two kinds of measurement that never stand in one group:

- graph: a row of calls is captured into a graph and replayed on contents that were written while
  the process was stopped. The value is the row's time, less that of a row of nothing, per call.
- plain: every call is gated: its contents are revealed when the clock starts. The value is such a
  call's time, less that of a gate with nothing behind it; launching is part of it.

A row shows all its contents at once, so calls could be computed together, or before their turn.
Gated calls of the same graph bound what that can gain: a row may not be faster than they are.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

GRAPH, PLAIN = "graph", "plain"
KINDS = (GRAPH, PLAIN)

#: How outputs come out of the process: into memory of the measurer's (destination), out of memory
#: of its own that the measurer maps (exported), or copied to the measurer's on the clock (copied).
DESTINATION, EXPORTED, COPIED = "destination", "exported", "copied"
OUTPUT_WAYS = (DESTINATION, EXPORTED, COPIED)

Statistic = Callable[[Sequence[float]], float]

RESAMPLES = 400
_SERIES = ("rows", "gated", "null_rows", "null_gated", "copied", "copied_null")

#: A call behind a gate takes this much longer than one in a row at times, and is honest. What
#: it takes beyond that is not excluded to be work that the row did not do call by call. On an
#: H200, honest kernels of 4 to 700 us took 30 us less to 1.3 us more: docs/rerun-security.md.
GATED_EXPECTED_NS = 500
#: Beyond this it is no honest call.
GATED_ALLOWANCE_NS = 3_000
GATED_ALLOWANCE_SHARE = 0.10
#: The end of a row is seen this much later or earlier than that of a row of nothing.
ROW_END_NS = 20_000
#: A value is resolved where all that is not excluded lies within this share of it.
RESOLVED_SHARE = 0.05


class OutsideError(ValueError):
    """The times do not allow what was asked of them."""


@dataclass(frozen=True)
class Timed:
    """One row or one gated call: its round, its time in ns by the measurer's clock, the secret
    seed of its contents (None where there were none) and the entry of a gated call."""

    round: int
    elapsed_ns: int
    seed: int | None = None
    entry: int | None = None


@dataclass(frozen=True)
class Raw:
    """The raw times of one subject; `null_*` are a trusted process's with nothing to do.

    In a graph's `gated` rows each call stands behind a gate of its own, `calls_gated` of them;
    elsewhere that is 1. Where a subject's outputs were copied, `copied` are plain calls of that
    process which only copy the outputs, and `copied_null` ones which do nothing.
    """

    kind: str
    outputs: str
    calls_per_row: int
    calls_gated: int
    rows: tuple[Timed, ...]
    gated: tuple[Timed, ...]
    null_rows: tuple[Timed, ...]
    null_gated: tuple[Timed, ...]
    copied: tuple[Timed, ...] = ()
    copied_null: tuple[Timed, ...] = ()

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Raw":
        """Read what `document` wrote; raises `OutsideError` for anything else."""
        try:
            kind, outputs = str(document["kind"]), str(document["outputs"])
            calls, gated = document["calls_per_row"], document["calls_gated"]
            series = {name: tuple(Timed(**entry) for entry in document[name]) for name in _SERIES}
        except (KeyError, TypeError) as error:
            raise OutsideError(f"outside lacks or misuses {error}") from error
        if kind not in KINDS or outputs not in OUTPUT_WAYS or type(calls) is not int:
            raise OutsideError(f"outside is of kind {kind!r}, outputs {outputs!r}")
        if type(gated) is not int:
            raise OutsideError(f"calls_gated is {gated!r}")
        return cls(kind, outputs, calls, gated, **series)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Assessment:
    """What the raw times say of one subject; every time in ns per call.

    `interval_ns` holds everything that is not excluded: noise, the end of a row, copies, and what
    gated calls leave open. `resolution_ns` is how far its ends lie from `value_ns` at most, and
    `resolved` whether that is small enough for the value to be verified. `gated_ns` is a gated
    call less its gate, `excess_ns` how much longer it took than the value, and `batched` that this
    is more than any honest solution's.
    """

    value_ns: float
    interval_ns: tuple[float, float]
    resolution_ns: float
    resolved: bool
    gated_ns: float
    excess_ns: float
    copy_ns: float
    batched: bool

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "interval_ns": list(self.interval_ns)}


def assess(raw: Raw) -> Assessment:
    """Everything that follows from a subject's raw times; the same input gives the same result.

    Raises `OutsideError` where a series is missing.
    """
    _check(raw)
    generator = random.Random(0)
    gates = _low if raw.kind == GRAPH else middle
    gated_ns = (_of(raw.gated, gates) - _of(raw.null_gated, gates)) / raw.calls_gated
    low_gated, high_gated = _interval(raw.gated, raw.null_gated, raw.calls_gated, gates, generator)
    copy_ns = 0.0
    if raw.outputs == COPIED:
        copy_ns = max(0.0, _of(raw.copied, middle) - _of(raw.copied_null, middle))
    if raw.kind == PLAIN:
        value, low, high, excess = gated_ns, low_gated, high_gated, 0.0
    else:
        calls = raw.calls_per_row
        value = (_of(raw.rows, middle) - _of(raw.null_rows, middle)) / calls
        low, high = _interval(raw.rows, raw.null_rows, calls, middle, generator)
        low, high = low - ROW_END_NS / calls, high + ROW_END_NS / calls
        excess = gated_ns - value
        high = max(high, high_gated - GATED_EXPECTED_NS)
    low = min(low, value) - copy_ns
    high = max(high, value)
    resolution = max(value - low, high - value)
    return Assessment(
        value_ns=value,
        interval_ns=(low, high),
        resolution_ns=resolution,
        resolved=value > 0 and resolution <= RESOLVED_SHARE * value,
        gated_ns=gated_ns,
        excess_ns=excess,
        copy_ns=copy_ns,
        batched=excess > GATED_ALLOWANCE_NS + GATED_ALLOWANCE_SHARE * max(gated_ns, 0.0),
    )


def speedup(reference: Raw | None, candidate: Raw) -> "float | None":
    """The reference's value over the candidate's; None unless both are of one kind.

    Nor where noise is larger than one of them, which then may be zero or less.
    """
    if reference is None or reference.kind != candidate.kind:
        return None
    own, other = assess(candidate).value_ns, assess(reference).value_ns
    return other / own if own > 0 and other > 0 else None


def middle(values: Sequence[float]) -> float:
    """The median."""
    if not values:
        raise OutsideError("no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def _check(raw: Raw) -> None:
    needed = {"gated": raw.gated, "null_gated": raw.null_gated}
    if raw.kind == GRAPH:
        needed.update(rows=raw.rows, null_rows=raw.null_rows)
    if raw.outputs == COPIED:
        needed.update(copied=raw.copied, copied_null=raw.copied_null)
    missing = [name for name, series in needed.items() if not series]
    if missing:
        raise OutsideError(f"no times in {', '.join(missing)}")
    if raw.calls_per_row < 1 or raw.calls_gated < 1:
        raise OutsideError("a row has at least one call")


def _low(values: Sequence[float]) -> float:
    """The lower quartile: a row behind gates now and then takes one change of contexts more."""
    ordered = sorted(values)
    return float(ordered[(len(ordered) - 1) // 4])


def _of(series: Sequence[Timed], statistic: Statistic) -> float:
    return statistic([timed.elapsed_ns for timed in series])


def _interval(
    series: Sequence[Timed],
    null: Sequence[Timed],
    calls: int,
    statistic: Statistic,
    generator: random.Random,
) -> tuple[float, float]:
    """95% bootstrap interval of the series less the null's, per call: rounds first, then inside."""
    own, nothing = _by_round(series), _by_round(null)
    values = sorted(
        (_resampled(own, statistic, generator) - _resampled(nothing, statistic, generator)) / calls
        for _ in range(RESAMPLES)
    )
    return values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES) - 1]


def _by_round(series: Sequence[Timed]) -> "list[list[int]]":
    rounds: dict[int, list[int]] = {}
    for timed in series:
        rounds.setdefault(timed.round, []).append(timed.elapsed_ns)
    return [values for _, values in sorted(rounds.items())]


def _resampled(rounds: list[list[int]], statistic: Statistic, generator: random.Random) -> float:
    chosen: list[int] = []
    for values in generator.choices(rounds, k=len(rounds)):
        chosen += generator.choices(values, k=len(values))
    return statistic(chosen)
