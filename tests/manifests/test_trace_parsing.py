"""What many traces share is read once, and comes to the same as reading every trace whole."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.manifests.catalog import parse_all
from assets.manifests.instants import InstantError, instant_and_text, instant_text, utc_instant
from assets.manifests.quarantine import RejectionError
from assets.manifests.trace_parsing import Remembered, TraceParser
from assets.traces.documents import Evaluation, Trace, TraceEnvironment, Workload
from assets.traces.lines import RawDocument
from assets.traces.outlines import EvaluationOutline, TraceOutline
from tests.builders import Json, trace

Content = tuple[str, str | None, Workload, TraceEnvironment | None, list[object]] | str

values = st.sampled_from(
    [None, True, 0, 1, -1.5, 2**70, 1e300, "NaN", "x", "\0", "\ud800", [], {}, {"hardware": "x"}]
)
# Fields of a trace, nested ones by two underscores, as the builder takes them.
fields = st.sampled_from(
    [
        "definition",
        "solution",
        "workload",
        "workload__uuid",
        "workload__axes",
        "workload__inputs",
        "workload__tolerance",
        "evaluation",
        "evaluation__status",
        "evaluation__log",
        "evaluation__environment",
        "evaluation__environment__libs",
        "evaluation__timestamp",
        "evaluation__performance",
        "evaluation__correctness",
    ]
)


def content(
    read: Trace | TraceOutline, workload: Workload, environment: TraceEnvironment | None
) -> Content:
    """All that is read of a good trace."""
    evaluation = read.evaluation
    measured: list[object] = []
    if isinstance(evaluation, Evaluation | EvaluationOutline):
        measured = [
            evaluation.status,
            evaluation.timestamp,
            evaluation.log,
            evaluation.correctness
            and [
                evaluation.correctness.max_absolute_error,
                evaluation.correctness.max_relative_error,
                evaluation.correctness.matched_ratio,
                evaluation.correctness.extra,
            ],
            evaluation.performance
            and [
                evaluation.performance.latency_ms,
                evaluation.performance.reference_latency_ms,
                evaluation.performance.speedup_factor,
            ],
        ]
    return read.definition, read.solution, workload, environment, measured


def by_parser(parser: TraceParser, data: bytes) -> list[tuple[RawDocument, Content]]:
    return [
        (
            item,
            f"{parsed.reason} {parsed}"
            if isinstance(parsed, RejectionError)
            else content(parsed.trace, parsed.workload, parsed.environment),
        )
        for item, parsed in parser.parse_all(data)
    ]


def one_by_one(data: bytes) -> list[tuple[RawDocument, Content]]:
    found: list[tuple[RawDocument, Content]] = []
    for item, read in parse_all(Trace, data):
        if isinstance(read, RejectionError):
            found.append((item, f"{read.reason} {read}"))
            continue
        evaluation = read.evaluation
        environment = evaluation.environment if isinstance(evaluation, Evaluation) else None
        found.append((item, content(read, read.workload, environment)))
    return found


@given(st.lists(st.dictionaries(fields, values, max_size=2), max_size=6))
def test_any_traces_are_read_as_if_each_were_read_whole(changes: list[Json]) -> None:
    lines = []
    for change in [{}, *changes, {}]:
        try:
            lines.append(json.dumps(trace(**change)))
        except (TypeError, AttributeError, KeyError, ValueError):
            # The builder cannot nest a field in what another change has replaced, or has nested a
            # value in itself.
            continue
    data = "\n".join([*lines, "{}", "{", "{}{}"]).encode()
    assert by_parser(TraceParser(), data) == one_by_one(data)


def test_a_workload_that_occurs_again_is_the_same_object() -> None:
    line = json.dumps(trace())
    first, second = (parsed for _, parsed in TraceParser().parse_all(f"{line}\n{line}".encode()))
    assert not isinstance(first, RejectionError)
    assert not isinstance(second, RejectionError)
    assert first.workload is second.workload
    assert first.environment is second.environment


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.manifests.trace_parsing._MAX_REMEMBERED", 3)
    remembered = Remembered[int, int]()
    for number in range(10):
        remembered.remember(number, number, 1)
        assert remembered[number] == number
        assert len(remembered) <= 3


def test_what_is_remembered_is_bounded_by_the_size_of_its_texts_too() -> None:
    remembered = Remembered[int, int]()
    for number in range(20):
        remembered.remember(number, number, 5 * 1024**2)
        assert remembered[number] == number
        assert len(remembered) <= 3


@given(
    st.datetimes().map(lambda time: time.isoformat())
    | st.from_regex(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-6]\d:[0-6]\d\.\d{3,7}Z?", fullmatch=True)
    | st.from_regex(r"\d{4}-\d\d-\d\dT24:00:00\.\d{3}\n?", fullmatch=True)
)
def test_the_short_way_to_an_instant_comes_to_the_same(text: str) -> None:
    assert outcome(instant_and_text, text) == outcome(
        lambda text: (utc_instant(text), instant_text(utc_instant(text))), text
    )


def outcome(function: Callable[[str], object], text: str) -> object:
    try:
        return function(text)
    except InstantError as error:
        return str(error)
