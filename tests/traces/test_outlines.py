"""An outline says what the whole trace says, or there is none."""

import json
from dataclasses import dataclass

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from assets.traces.documents import (
    Correctness,
    Evaluation,
    NotEvaluated,
    Performance,
    Trace,
    TraceEnvironment,
    Workload,
)
from assets.traces.outlines import (
    CorrectnessOutline,
    EvaluationOutline,
    PerformanceOutline,
    TraceOutline,
    outline_of,
)
from tests.builders import trace

LINE = json.dumps(trace(evaluation__log="a\tlog, \U0001f600\n", solution="é")).encode()

numbers = (
    st.from_regex(r"-?(0|[1-9]\d{0,40})(\.\d{1,25})?([eE][+-]?\d{1,3})?", fullmatch=True)
    | st.floats().map(json.dumps)
    | st.integers(-(2**1030), 2**1030).map(str)
    | st.sampled_from(["01", "1.", ".5", "+1", "-", "0x1", "1e", "NaN", "true", '"NaN"', "[]"])
)
letters = st.text(max_size=5).map(lambda text: json.dumps(text)[1:-1]) | st.sampled_from(
    ["\\ud800", "\\ud83d\\ude00", "\\ude00\\ud83d", "\\u0000", "\\x", "\\", '"', "\x01", "\x7f"]
)
# Fields with several names, fields that occur twice, and fields that nobody knows.
more_fields = st.lists(
    st.sampled_from(
        [
            '"log":"x"',
            '"log":null',
            '"log":5',
            '"error":"y"',
            '"error":null',
            '"status":"z"',
            '"device":"d"',
            '"definition":"d"',
            '"timestamp":"t"',
            '"extra":{"a":1e400}',
            '"extra":null',
            '"performance":{}',
            '"correctness":null',
            '"matched_ratio":1',
            '"st\\u0061tus":"escaped"',
            '"unknown":[{"deep":"\\x01"}]',
        ]
    ),
    max_size=3,
)


def expect_the_same(line: bytes) -> bool:
    """Compare the outline of a line with the whole trace; False where it has no outline."""
    outline = outline_of(line)
    if outline is None:
        return False
    stated = msgspec.to_builtins(outline, builtin_types=(msgspec.Raw,))
    workload = _model(Workload, stated.pop("workload"))
    evaluation = stated["evaluation"]
    environment = None
    if evaluation is not None:
        environment = _model(TraceEnvironment, evaluation.pop("environment"))
    if workload is None or (evaluation is not None and environment is None):
        return False  # such texts are never remembered, so the whole line is looked at
    whole = Trace.model_validate_json(line)
    assert whole.workload == workload
    expected = whole.model_dump(exclude={"workload": True, "evaluation": {"environment"}})
    if isinstance(whole.evaluation, Evaluation):
        assert whole.evaluation.environment == environment
    assert repr(expected) == repr(_in_order(expected, stated))
    return True


def _model(model: type[BaseModel], text: msgspec.Raw) -> BaseModel | None:
    try:
        return model.model_validate_json(bytes(text))
    except ValueError:
        return None


def _in_order(pattern: object, found: object) -> object:
    """Dictionaries in the order of others; all else as it is, so that -0.0 is not 0.0."""
    if not isinstance(pattern, dict) or not isinstance(found, dict):
        return found
    return {
        **{name: _in_order(pattern[name], found[name]) for name in pattern if name in found},
        **{name: item for name, item in found.items() if name not in pattern},
    }


def test_a_usual_line_has_an_outline() -> None:
    assert expect_the_same(LINE)
    assert expect_the_same(json.dumps(trace(evaluation=None)).encode())


@given(numbers, numbers)
def test_numbers_are_what_the_whole_trace_says(latency: str, error: str) -> None:
    document = json.dumps(
        trace(
            evaluation__performance={"latency_ms": 1234567},
            evaluation__correctness={"max_absolute_error": 7654321},
        )
    )
    expect_the_same(document.replace("1234567", latency).replace("7654321", error).encode())


@given(letters, letters)
def test_texts_are_what_the_whole_trace_says(log: str, solution: str) -> None:
    document = json.dumps(trace(evaluation__log="LOG", solution="SOLUTION"))
    expect_the_same(document.replace("LOG", log).replace("SOLUTION", solution).encode())


@given(more_fields, more_fields, more_fields)
def test_more_fields_are_what_the_whole_trace_says(
    outside: list[str], evaluation: list[str], measured: list[str]
) -> None:
    line = LINE.decode()
    for place, fields in (
        ('{"definition"', outside),
        ('{"status"', evaluation),
        ('{"max_relative_error"', measured),
    ):
        assert place in line
        line = line.replace(place, "{" + "".join(f"{field}," for field in fields) + place[1:], 1)
    expect_the_same(line.encode())


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(LINE)),
            st.integers(0, 3),
            st.binary(max_size=2) | st.sampled_from([b'"', b"{}", b",", b"\xff", b"\xed\xa0\x80"]),
        ),
        min_size=1,
        max_size=3,
    )
)
@example([(0, 0, b"\xef\xbb\xbf")])
@example([(len(LINE), 0, b" {}")])
def test_damaged_lines_are_what_the_whole_trace_says(damage: list[tuple[int, int, bytes]]) -> None:
    line = LINE
    for position, removed, inserted in damage:
        line = line[:position] + inserted + line[position + removed :]
    expect_the_same(line)


@dataclass(frozen=True)
class Pair:
    outline: type[msgspec.Struct]
    whole: type[BaseModel]


def test_an_outline_has_the_fields_of_what_it_is_the_outline_of() -> None:
    for pair in (
        Pair(TraceOutline, Trace),
        Pair(EvaluationOutline, Evaluation),
        Pair(CorrectnessOutline, Correctness),
        Pair(PerformanceOutline, Performance),
    ):
        assert set(pair.outline.__struct_fields__) == set(pair.whole.model_fields)


def test_what_was_not_evaluated_has_no_outline() -> None:
    line = json.dumps(trace(evaluation={})).encode()
    assert outline_of(line) is None
    assert isinstance(Trace.model_validate_json(line).evaluation, NotEvaluated)
