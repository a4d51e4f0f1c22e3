"""Whatever may be published can be derived: nothing that a row says may break a build for good."""

import math
import tempfile
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from assets.leaderboards.catalog import sql_catalog
from assets.tables.contracts import PUBLISHED
from tests.builders import Json, dataset, definition, ingest, trace, workload, workload_row
from tests.leaderboards.extremes import (
    Extreme,
    add_world,
    extremes_of,
    ordinary,
    publish_once,
)
from tests.leaderboards.index import Index, at

# Builds take their time, and to look for the smallest failing one takes many.
_UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
_EXTREMES = [extreme for table in PUBLISHED for extreme in extremes_of(table)]


def read_everything(index: Index) -> None:
    """Build all tables, and run what only readers run: the views, exports and checks."""
    connection = index.build()
    for table in sql_catalog():
        if table.file.is_view:
            connection.table(table.name).fetchall()
    for folder in ("export", "checks"):
        for file in resources.files("sql").joinpath(folder).iterdir():
            if file.name.endswith(".sql"):
                connection.sql(file.read_text()).fetchall()


@pytest.mark.parametrize("table", PUBLISHED)
def test_any_value_that_a_contract_admits_can_be_derived(table):
    index = ordinary()
    for number, extreme in enumerate(extremes_of(table)):
        add_world(index, f"{number}", extreme)
    publish_once(index)
    read_everything(index)


@pytest.mark.integration
@settings(max_examples=5, phases=_UNSHRUNK)
@given(st.lists(st.lists(st.sampled_from(_EXTREMES), min_size=2, max_size=8), max_size=20))
def test_any_such_values_together_can_be_derived(worlds: list[list[Extreme]]):
    index = ordinary()
    for number, extremes in enumerate(worlds):
        add_world(index, f"{number}", *extremes)
    publish_once(index)
    read_everything(index)


sizes = st.sampled_from([-(2**53) + 1, -1, 0, 1, 7, 2_000_000_000, 2**53 - 1])
dtypes = st.sampled_from(["float32", "float64", "int4", "bfloat16", "float8_e4m3fn", "unheard_of"])
dimensions = st.sampled_from(["m", "n", "k", "m*2", 0, 1, 2**53 - 1, "9007199254740991", "k//k"])
measures = st.sampled_from(
    [0.0, -1.0, 5e-324, 1e-10, 1e-7, 0.0125, 9e9, 1.7976931348623157e308, math.inf, math.nan, None,
     "NaN", "Infinity", "-Infinity"]
)  # fmt: skip
times = st.sampled_from(
    ["0001-01-01", "9999-12-31T23:59:59.999999", "1969-12-31T23:59:59Z", "2026-02-24T00:00:00"]
)
logs = st.sampled_from([None, "", "Solution skipped after 3 failures", "x" * 100_000, "\u202e{"])
statuses = st.sampled_from(
    ["PASSED", "PASSED", "PASSED", "INCORRECT_NUMERICAL", "RUNTIME_ERROR", "COMPILE_ERROR"]
)


@st.composite
def definitions(draw: st.DrawFn) -> Json:
    """A definition of two variable axes and a constant one, with tensors of any shape."""
    shapes = st.lists(dimensions, max_size=5)
    return definition(
        op_type=draw(st.sampled_from(["gemm", "toy_add", "silu"])),
        axes={
            "m": {"type": "var"},
            "n": {"type": "var"},
            "k": {"type": "const", "value": draw(sizes)},
        },
        inputs={name: {"shape": draw(shapes), "dtype": draw(dtypes)} for name in ("x", "w")},
        outputs={name: {"shape": draw(shapes), "dtype": draw(dtypes)} for name in ("y", "z")},
    )


@st.composite
def workloads(draw: st.DrawFn) -> Json:
    """A workload that binds both axes."""
    return workload(
        uuid=draw(st.sampled_from([None, "", "u", "x" * 70_000])),
        axes={"m": draw(sizes), "n": draw(sizes)},
    )


@st.composite
def traces(draw: st.DrawFn) -> Json:
    """A trace with any numbers, of any outcome."""
    return trace(
        workload=draw(workloads()),
        evaluation__status=draw(statuses),
        evaluation__timestamp=draw(times),
        evaluation__log=draw(logs),
        evaluation__performance={
            name: draw(measures)
            for name in ("latency_ms", "reference_latency_ms", "speedup_factor")
        },
        evaluation__correctness={
            name: draw(measures) for name in ("max_absolute_error", "max_relative_error")
        },
    )


def published(*documents: object, **replaced: object) -> Index:
    """An index of what ingesting a small dataset publishes."""
    index = Index()
    with tempfile.TemporaryDirectory() as folder:
        found = ingest(dataset(Path(folder) / "dataset", **replaced))  # type: ignore[arg-type]
    for table, rows in found.tables.items():
        for row in rows:
            row |= {"publication_id": "00000001", "published_at": at("2026-01-01")}
        index.rows[table] = rows
    publish_once(index)
    return index


@pytest.mark.integration
@settings(max_examples=8, phases=_UNSHRUNK)
@given(
    definitions(), st.lists(workloads(), max_size=6), st.lists(traces(), min_size=6, max_size=20)
)
def test_any_documents_that_are_published_can_be_derived(document, rows, runs):
    read_everything(
        published(
            definition=document,
            traces=runs,
            workloads=[{**workload_row(), "workload": row} for row in rows],
        )
    )


def test_axes_that_multiply_past_every_number_have_no_size():
    huge = {"m": 2_000_000_000, "n": 2_000_000_000}
    index = published(
        definition=definition(
            axes={name: {"type": "var"} for name in huge},
            inputs={"x": {"shape": ["m", "n"], "dtype": "float32"}},
            outputs={"y": {"shape": ["m"], "dtype": "float32"}},
            op_type="gemm",
        ),
        traces=[
            trace(workload=workload(axes=axes, inputs={"x": {"type": "random"}}, uuid=uuid))
            for uuid, axes in (("1", huge), ("2", {"m": 4, "n": 2**40}), ("3", {"m": 1, "n": -1}))
        ],
    )
    read_everything(index)
    found = index.table("workload_sizes", "input_bytes", "output_bytes", "moved_bytes")
    assert found == [(2**44, 16, 2**44 + 16), (None, 8_000_000_000, None)]


def test_an_axis_of_outputs_alone_may_be_negative():
    index = published(
        definition=definition(outputs={"y": {"shape": ["batch", "n"], "dtype": "float32"}},
                              axes={"batch": {"type": "var"}, "n": {"type": "var"},
                                    "hidden": {"type": "const", "value": 8}}),
        traces=[trace(workload=workload(axes={"batch": 4, "n": -1}))],
    )  # fmt: skip
    assert len(index.rows["runs"]) == 1
    read_everything(index)
    assert index.table("workload_sizes", "input_bytes", "output_bytes") == [(96, None)]


def test_a_run_that_passed_was_tried_whatever_its_log_says():
    index = published(traces=[trace(evaluation__log="Solution skipped after 3 failures")])
    assert [row["not_measured"] for row in index.rows["runs"]] == [True]
    read_everything(index)
    assert index.table("result_facts", "runs", "runs_attempted", "runs_passed") == [(1, 1, 1)]


def test_a_time_of_zero_has_no_ratio():
    index = ordinary()
    for row in index.rows["runs"]:
        if row["author_directory"] == "baseline":
            row["primary_value"] = 0
    read_everything(index)
    assert index.table("author_results", "author", "best_ns", "speedup") == [
        ("author", 20, None), ("author", 21, None),
        ("baseline", None, None), ("baseline", None, None),
    ]  # fmt: skip
    assert index.table("leaderboard_solutions", "groups_passed", "slowdown_to_best") == [
        (0, None), (2, 1.0),
    ]  # fmt: skip


def test_medians_are_between_the_ends_of_their_range_also_where_doubles_are_coarse():
    index = Index()
    for number, value in enumerate((1, 2**53 + 1, 2**53 + 3, 2**63 - 1)):
        index.run(f"{number}", value, implementation_digest=f"{number}")
    found = index.table("rank_facts", "minimum_ns", "median_ns")
    assert [low == middle for low, middle in found] == [True] * 4
