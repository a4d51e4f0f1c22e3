"""Trace lines as typed documents, where what many lines share is read once.

Every solution is measured on the same workloads in the same few environments, and these are most
of a line. A line is read as an outline; its workload and environment are looked up by content,
and only a line that brings a new one is read as a whole `Trace`.
"""

import marshal
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from assets.manifests.catalog import parse, parse_item
from assets.manifests.quarantine import RejectionError
from assets.traces.documents import Evaluation, Trace, TraceEnvironment, TraceOutline, Workload
from assets.traces.lines import Malformed, RawDocument, read_documents

_MAX_REMEMBERED = 10_000
_OUTLINES = TypeAdapter(TraceOutline).validator

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Remembered(dict[_Key, _Value]):
    """Values by what they were made from; emptied when they are too many: memory is bounded."""

    def remember(self, key: _Key, value: _Value) -> None:
        """Keep a value."""
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        self[key] = value


class ParsedTrace(NamedTuple):
    """A good trace.

    `trace` may be a `TraceOutline`, whose workload and environment are not typed: they stand
    beside it. The keys are the same where the contents are, and empty where nobody looked.
    """

    trace: Trace
    workload: Workload
    environment: TraceEnvironment | None
    workload_key: bytes
    environment_key: bytes


class TraceParser:
    """Parses trace and workload files."""

    def __init__(self) -> None:
        self._workloads = Remembered[bytes, Workload]()
        self._environments = Remembered[bytes, TraceEnvironment]()

    def parse_all(self, data: bytes) -> Iterator[tuple[RawDocument, ParsedTrace | RejectionError]]:
        """All documents of a file, good or bad, in order."""
        for item in read_documents(data):
            if isinstance(item, Malformed):
                yield from _exactly(item)
                continue
            try:
                outline = _OUTLINES.validate_json(item.data)
            except ValidationError:
                # Why is said by reading the whole trace, which may also be more lenient.
                yield from _exactly(item)
                continue
            try:
                yield item, self._completed(outline, item)
            except RejectionError as error:
                yield item, error

    def _completed(self, outline: TraceOutline, item: RawDocument) -> ParsedTrace:
        # Version 2 has no references to objects met before: the bytes depend on the values alone.
        workload_key = marshal.dumps(outline.workload, 2)
        workload = self._workloads.get(workload_key)
        evaluation = outline.evaluation
        if isinstance(evaluation, Evaluation):
            environment_key = marshal.dumps(evaluation.environment, 2)
            environment = self._environments.get(environment_key)
        else:
            environment_key, environment = b"", None
        if workload is None or (environment_key and environment is None):
            whole = _whole(parse(Trace, item))
            workload, environment = whole.workload, whole.environment
            self._workloads.remember(workload_key, workload)
            if environment is not None:
                self._environments.remember(environment_key, environment)
        return ParsedTrace(outline, workload, environment, workload_key, environment_key)


def _exactly(
    item: RawDocument | Malformed,
) -> Iterator[tuple[RawDocument, ParsedTrace | RejectionError]]:
    for piece, trace in parse_item(Trace, item):
        yield piece, trace if isinstance(trace, RejectionError) else _whole(trace)


def _whole(trace: Trace) -> ParsedTrace:
    evaluation = trace.evaluation
    environment = evaluation.environment if isinstance(evaluation, Evaluation) else None
    return ParsedTrace(trace, trace.workload, environment, b"", b"")
