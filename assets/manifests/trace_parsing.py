"""Trace lines as typed documents, where what many lines share is read once.

Every solution is measured on the same workloads in the same few environments, and these are most
of a line. A line is read as an outline; its workload and environment are looked up by their text,
and only a line that brings a new one is read as a whole `Trace`.
"""

from collections.abc import Hashable, Iterator
from typing import TypeVar

from msgspec import Struct

from assets.manifests.catalog import parse_item
from assets.manifests.quarantine import RejectionError
from assets.traces.documents import Evaluation, Trace, TraceEnvironment, Workload
from assets.traces.lines import Malformed, RawDocument, read_documents
from assets.traces.outlines import EvaluationOutline, TraceOutline, outline_of

_MAX_REMEMBERED = 10_000
_MAX_REMEMBERED_BYTES = 16 * 1024**2

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Remembered(dict[_Key, _Value]):
    """Values by what they were made from; emptied when they are too many: memory is bounded."""

    _size_bytes = 0

    def remember(self, key: _Key, value: _Value, size_bytes: int) -> None:
        """Keep a value; it was made from a text of that size at most."""
        self._size_bytes += size_bytes
        if len(self) >= _MAX_REMEMBERED or self._size_bytes > _MAX_REMEMBERED_BYTES:
            self.clear()
            self._size_bytes = size_bytes
        self[key] = value


class ParsedTrace(Struct, frozen=True, gc=False):
    """A good trace, with its workload and environment beside it, since outlines have none.

    Keys that are the same stand for contents that are the same. `evaluation` and `environment`
    are both None where nothing was measured.
    """

    trace: Trace | TraceOutline
    evaluation: Evaluation | EvaluationOutline | None
    workload: Workload
    environment: TraceEnvironment | None
    workload_key: Hashable
    environment_key: Hashable


Parsed = tuple[RawDocument, ParsedTrace | RejectionError]


class TraceParser:
    """Parses trace and workload files."""

    def __init__(self) -> None:
        self._workloads = Remembered[bytes, Workload]()
        self._environments = Remembered[bytes, TraceEnvironment | None]()

    def parse_all(self, data: bytes) -> Iterator[Parsed]:
        """All documents of a file, good or bad, in order."""
        for item in read_documents(data):
            if isinstance(item, Malformed) or (outline := outline_of(item.data)) is None:
                yield from _exactly(item)
                continue
            evaluation = outline.evaluation
            workload_key = bytes(outline.workload)
            environment_key = bytes(evaluation.environment) if evaluation else b""
            try:
                workload = self._workloads[workload_key]
                environment = self._environments[environment_key]
            except KeyError:
                found = list(_exactly(item))
                _, whole = found[0]
                if isinstance(whole, RejectionError):
                    yield from found
                    continue
                workload, environment = whole.workload, whole.environment
                self._workloads.remember(workload_key, workload, len(workload_key))
                self._environments.remember(environment_key, environment, len(environment_key))
            yield (
                item,
                ParsedTrace(
                    outline, evaluation, workload, environment, workload_key, environment_key
                ),
            )


def _exactly(item: RawDocument | Malformed) -> Iterator[Parsed]:
    for piece, trace in parse_item(Trace, item):
        yield piece, trace if isinstance(trace, RejectionError) else _whole(trace)


def _whole(trace: Trace) -> ParsedTrace:
    workload = trace.workload
    if not isinstance(trace.evaluation, Evaluation):
        return ParsedTrace(trace, None, workload, None, workload.parts(), None)
    environment = trace.evaluation.environment
    return ParsedTrace(
        trace, trace.evaluation, workload, environment, workload.parts(), environment.parts()
    )
