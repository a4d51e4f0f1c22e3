"""Trace lines in the form that almost all of them have, read quickly.

A line is read as an outline only where nothing about it is in doubt. Whatever is unusual about
one, good or bad, is left to the models of `documents`, which alone say what a document is. Of
the workload and the environment, which many traces share, an outline keeps the text: to read
them anew each time takes longer than all the rest.
"""

import msgspec
from msgspec import Raw, Struct

from assets.traces.documents import Measured


class CorrectnessOutline(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """`documents.Correctness` without free fields."""

    max_relative_error: Measured = None
    max_absolute_error: Measured = None
    extra: None = None
    matched_ratio: Measured = None


class PerformanceOutline(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """`documents.Performance`."""

    latency_ms: Measured = None
    reference_latency_ms: Measured = None
    speedup_factor: Measured = None


class EvaluationOutline(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """`documents.Evaluation` with the text of its environment."""

    status: str
    environment: Raw
    timestamp: str
    log: str | None = None
    correctness: CorrectnessOutline | None = None
    performance: PerformanceOutline | None = None


class TraceOutline(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """`documents.Trace` with the text of its workload."""

    definition: str
    workload: Raw
    solution: str | None = None
    evaluation: EvaluationOutline | None = None


_decode = msgspec.json.Decoder(TraceOutline).decode


def outline_of(line: bytes) -> TraceOutline | None:
    """The outline of a trace; None for what only `documents.Trace` can judge.

    An outline says nothing about whether its workload and its environment are good.
    """
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
