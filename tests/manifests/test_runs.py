"""Traces become runs that every published rule allows, or are refused with a reason."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.manifests import names
from assets.manifests.environments import environment_of
from assets.manifests.implementations import DatasetOrigin, implementation_of
from assets.manifests.instants import InstantError, instant_text, utc_instant
from assets.manifests.kinds import BenchmarkRun, Manifest, Metadata, dump
from assets.manifests.operations import operation_of
from assets.manifests.quarantine import Reason, RejectionError
from assets.manifests.runs import Run, log_of, round_half_up, run_of
from assets.manifests.workloads import case_of
from assets.traces.documents import Definition, Evaluation, Solution, Trace
from tests.builders import REMOVED, REVISION, Json, dataset, definition, ingest, solution, trace
from tests.manifests.test_kinds import Validator, schema_validator

ORIGIN = DatasetOrigin("somebody/dataset", None, REVISION)
OPERATION = operation_of(Definition.model_validate(definition()), path="d", definitions_url=None)
IMPLEMENTATION = implementation_of(
    Solution.model_validate(solution()),
    operation=OPERATION,
    origin=ORIGIN,
    identity_revision=lambda content: REVISION,
    path="s",
    author_directory="ann",
)


def run(document: Json) -> Run:
    """The run of a trace document of the builders' operation and solution."""
    read = Trace.model_validate_json(json.dumps(document))
    assert isinstance(read.evaluation, Evaluation)
    return run_of(
        read,
        read.evaluation,
        operation=OPERATION,
        implementation=IMPLEMENTATION,
        case=case_of(read.workload, OPERATION),
        environment=environment_of(read.evaluation.environment),
        log=log_of(read.evaluation.log),
    )


def reason_of(**changes: object) -> tuple[Reason, str]:
    """Why a trace with some values changed is refused, and where."""
    with pytest.raises(RejectionError) as error:
        run(trace(**changes))
    assert error.value.json_path[2:] in str(error.value)
    return error.value.reason, error.value.json_path


measures = (
    st.none()
    | st.floats()
    | st.sampled_from(["NaN", "Infinity", "-Infinity", "0.5"])
    | st.floats(0, 1e6)
)
latencies = st.floats(1e-9, 1e9) | measures
timestamps = (
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(datetime.isoformat)
    | st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
    | st.text(max_size=20)
)
texts = st.text(max_size=30) | st.text("abc_ -./0A", max_size=220)
evaluations = st.fixed_dictionaries(
    {
        "status": st.sampled_from([*names.STATUSES, "passed"]),
        "environment": st.fixed_dictionaries(
            {
                "hardware": texts,
                "libs": st.dictionaries(
                    st.sampled_from(["torch", "cuda", "triton", "a-b", "a_b", "4x", "é"]), texts
                ),
            }
        ),
        "timestamp": timestamps,
        "log": st.none() | texts,
        "correctness": st.none()
        | st.fixed_dictionaries({"max_relative_error": measures, "max_absolute_error": measures}),
        "performance": st.none()
        | st.fixed_dictionaries(
            {
                "latency_ms": latencies,
                "reference_latency_ms": measures,
                "speedup_factor": measures,
            }
        ),
    }
)
workloads = st.fixed_dictionaries(
    {"axes": st.fixed_dictionaries({"batch": st.integers(0, 2**53 - 1)})},
    optional={
        "uuid": st.none() | texts,
        "tolerance": st.fixed_dictionaries({"max_atol": st.floats(0, 1)}),
    },
)


@pytest.fixture(scope="module")
def schema(corpus: Path) -> Validator:
    return schema_validator(corpus, "BenchmarkRun")


@given(evaluations, workloads)
def test_a_run_is_what_models_and_schema_allow(
    schema: Validator, evaluation: Json, workload: Json
) -> None:
    try:
        made = run(trace(evaluation=evaluation, workload=workload))
    except RejectionError:
        return
    document = json.loads(made.identity_json)
    metadata = Metadata.model_validate_json(made.metadata_json)
    manifest = Manifest.of(BenchmarkRun.model_validate(document["spec"]), metadata)
    assert manifest.identity_json == made.identity_json
    assert manifest.digest == made.digest
    assert schema({**document, "metadata": dump(metadata)}) == []


def test_the_builders_trace_is_published_as_it_is() -> None:
    made = run(trace())
    spec = json.loads(made.identity_json)["spec"]
    assert spec["timing"] == {"primaryStatistic": "mean", "latencyNs": {"mean": 12500}}
    assert spec["observedAt"] == "2025-10-21T13:37:42.930Z"
    assert spec["correctness"]["maximumAbsoluteError"] == 0.5
    assert spec["sourceNative"]["metrics"] == {
        "latency_ms": 0.0125,
        "reference_latency_ms": 0.05,
        "speedup_factor": 4,
    }


PERFORMANCE = "evaluation__performance__latency_ms"


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"evaluation__status": "OOM"}, Reason.UNKNOWN_STATUS, "status"),
        ({"evaluation__performance": None}, Reason.NO_PERFORMANCE, "performance"),
        ({"evaluation__performance": REMOVED}, Reason.NO_PERFORMANCE, "performance"),
        ({PERFORMANCE: 0}, Reason.BAD_LATENCY, "performance.latency_ms"),
        ({PERFORMANCE: -1.0}, Reason.BAD_LATENCY, "performance.latency_ms"),
        ({PERFORMANCE: float("nan")}, Reason.BAD_LATENCY, "performance.latency_ms"),
        ({PERFORMANCE: 1e10}, Reason.BAD_LATENCY, "performance.latency_ms"),
        ({PERFORMANCE: "0.1"}, Reason.BAD_LATENCY, "performance.latency_ms"),
        (
            {"evaluation__performance__speedup_factor": "fast"},
            Reason.BAD_MEASURE,
            "performance.speedup_factor",
        ),
        (
            {"evaluation__correctness__max_absolute_error": -1},
            Reason.BAD_MEASURE,
            "correctness.max_absolute_error",
        ),
        (
            {"evaluation__correctness__max_relative_error": "-Infinity"},
            Reason.BAD_MEASURE,
            "correctness.max_relative_error",
        ),
        ({"evaluation__timestamp": "yesterday"}, Reason.BAD_TIMESTAMP, "timestamp"),
        ({"evaluation__environment__libs": {"4": "1"}}, Reason.BAD_ENVIRONMENT, "environment.libs"),
        (
            {"evaluation__environment__libs": {"a-b": "1", "a_b": "2"}},
            Reason.NAME_COLLISION,
            "environment.libs",
        ),
        (
            {"evaluation__environment__libs__torch": "x" * 101},
            Reason.TEXT_TOO_LONG,
            "environment.libs.torch",
        ),
        (
            {"evaluation__environment__hardware": "x" * 201},
            Reason.TEXT_TOO_LONG,
            "environment.hardware",
        ),
        (
            {"evaluation__environment__hardware": "a\0"},
            Reason.NUL_CHARACTER,
            "environment.hardware",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_and_the_field_named(
    changes: Json, reason: Reason, path: str
) -> None:
    assert reason_of(**changes) == (reason, f"$.evaluation.{path}")


@pytest.mark.parametrize("value", ["NaN", "Infinity", float("inf"), float("nan"), None, 1e400])
def test_an_error_that_is_not_finite_is_no_bound(value: object) -> None:
    made = run(trace(evaluation__correctness__max_absolute_error=value))
    assert made.errors.absolute is None
    assert "maximumAbsoluteError" not in made.identity_json


@pytest.mark.parametrize(
    ("value", "kept"),
    [("NaN", "NaN"), (float("nan"), "NaN"), ("Infinity", "Infinity"), (1e400, "Infinity")],
)
def test_an_error_that_is_not_finite_is_kept_beside(value: object, kept: str) -> None:
    made = run(trace(evaluation__correctness__max_relative_error=value))
    assert json.loads(made.correctness_extra_json or "") == {"max_relative_error": kept}
    plain = run(trace(evaluation__correctness__max_relative_error=None))
    assert (made.digest, plain.correctness_extra_json) == (plain.digest, None)


@pytest.mark.parametrize(
    ("latency_ms", "latency_ns"), [(4.9e-7, None), (5e-324, None), (5e-7, 1), (6e-7, 1), (1e-6, 1)]
)
def test_a_latency_that_rounds_to_nothing_is_no_latency(
    latency_ms: float, latency_ns: int | None
) -> None:
    document = trace(evaluation__performance__latency_ms=latency_ms)
    if latency_ns is not None:
        assert run(document).mean_ns == latency_ns
        return
    with pytest.raises(RejectionError, match="rounds to 0 ns") as error:
        run(document)
    assert error.value.reason is Reason.BAD_LATENCY


def test_a_long_title_is_cut_and_costs_no_run(tmp_path: Path) -> None:
    name = "s" * 190
    ours = ingest(
        dataset(tmp_path / "dataset", solution=solution(name), traces=[trace(solution=name)]),
        work=tmp_path,
    )
    [row] = ours["runs"]
    title = json.loads(row["metadata_json"])["title"]
    assert (len(title), title[-1]) == (200, "…")


@given(st.floats(0, 2**52, allow_nan=False))
def test_halves_are_rounded_up(value: float) -> None:
    assert 0 <= round_half_up(value) - value + 0.5 <= 1 or value >= 2**51


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-1439, 1439))
def test_an_instant_is_the_same_however_its_offset_is_written(
    moment: datetime, offset_minutes: int
) -> None:
    sign, minutes = "-" if offset_minutes < 0 else "+", abs(offset_minutes)
    hours, rest = divmod(minutes, 60)
    try:
        expected = utc_instant(f"{moment.isoformat()}{sign}{hours:02}:{rest:02}")
    except InstantError:
        return
    assert utc_instant(f"{moment.isoformat(' ')}{sign}{hours:02}{rest:02}") == expected
    assert utc_instant(instant_text(expected)) == expected


@pytest.mark.parametrize(
    "text", ["٢٠٢٥-01-01", "2025-1-1", "2025-01-01T25:00", "2025-01-01T10:00+24:00", "0000-01-01"]
)
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(InstantError, match="is not a"):
        utc_instant(text)


@pytest.mark.parametrize("latency_ms", [2**53 / 1e6, 1e303, 1.7976931348623157e308])
def test_a_latency_beyond_2_to_the_53_ns_is_refused_also_where_its_ns_are_infinite(latency_ms):
    reason, path = reason_of(evaluation__performance__latency_ms=latency_ms)
    assert (reason, path) == (Reason.BAD_LATENCY, "$.evaluation.performance.latency_ms")
