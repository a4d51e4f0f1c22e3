"""What follows from outside times follows, and claims less where the clock sees less."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.reruns.worker.outside import (
    COPIED,
    DESTINATION,
    GRAPH,
    PLAIN,
    OutsideError,
    Raw,
    Timed,
    assess,
    speedup,
)

ROUNDS = 6


def times(value_ns: int, each: int = 3, spread_ns: int = 0) -> tuple[Timed, ...]:
    return tuple(
        Timed(number, value_ns + spread_ns * (place - 1), 7)
        for number in range(ROUNDS)
        for place in range(each)
    )


def graph(call_ns: int, gated_ns: int, calls: int = 500, spread_ns: int = 20_000) -> Raw:
    """A kernel that takes `call_ns` in a row and `gated_ns` behind a gate; a gate costs 26 us."""
    return Raw(
        GRAPH, DESTINATION, calls, 64,
        rows=times(400_000 + calls * call_ns, spread_ns=spread_ns),
        gated=times(64 * (26_000 + gated_ns)),
        null_rows=times(400_000, spread_ns=spread_ns),
        null_gated=times(64 * 26_000),
    )  # fmt: skip


def test_a_row_is_what_its_calls_take_without_the_way_there_and_back() -> None:
    found = assess(graph(20_000, 20_000))
    assert found.value_ns == pytest.approx(20_000)
    assert found.gated_ns == pytest.approx(20_000)
    low, high = found.interval_ns
    assert low <= 20_000 <= high
    assert found.resolved
    assert not found.batched


@pytest.mark.parametrize("call_ns", [2_000, 10_000, 17_000])
def test_a_row_that_is_faster_than_its_calls_one_by_one_is_no_row_of_calls(call_ns: int) -> None:
    found = assess(graph(call_ns, 26_000))
    assert found.batched
    assert not found.resolved
    assert found.interval_ns[1] >= 25_000


def test_what_gated_calls_leave_open_is_in_the_interval() -> None:
    """2 us more behind a gate may be honest: nothing is said against it, and nothing verified."""
    found = assess(graph(20_000, 22_000))
    assert not found.batched
    assert not found.resolved
    assert found.interval_ns[1] == pytest.approx(21_500, abs=100)


def test_the_same_doubt_matters_less_for_a_slower_kernel() -> None:
    assert assess(graph(100_000, 102_000)).resolved


@settings(max_examples=60, deadline=None)
@given(
    call_ns=st.integers(20_000, 500_000),
    claimed=st.floats(0.05, 0.94),
    spread_ns=st.integers(0, 30_000),
)
def test_whoever_gains_more_than_five_percent_in_a_row_is_not_resolved(
    call_ns: int, claimed: float, spread_ns: int
) -> None:
    found = assess(graph(int(call_ns * claimed), call_ns, spread_ns=spread_ns))
    gap = call_ns - 500 - call_ns * claimed
    if gap > 0.05 * call_ns * claimed + 100:
        assert not found.resolved


def test_a_row_too_short_for_its_scatter_is_not_resolved() -> None:
    assert not assess(graph(2_000, 2_000, calls=10)).resolved


def test_a_plain_call_is_its_gate_less_a_gate_with_next_to_nothing_behind() -> None:
    raw = Raw(PLAIN, DESTINATION, 1, 1, (), times(150_000, 12), (), times(50_000, 12))
    found = assess(raw)
    assert found.value_ns == 100_000
    assert found.excess_ns == 0
    assert found.resolved


def test_copies_are_not_given_to_whoever_makes_none() -> None:
    """What copying cost is in the value; that it may have cost nothing is in the interval."""
    raw = Raw(PLAIN, DESTINATION, 1, 1, (), times(150_000, 12), (), times(50_000, 12))
    copied = replace(raw, outputs=COPIED, copied=times(80_000, 12), copied_null=times(50_000, 12))
    found = assess(copied)
    assert found.value_ns == 100_000
    assert found.copy_ns == 30_000
    assert found.interval_ns[0] <= 70_000
    assert not found.resolved


def test_the_same_times_give_the_same_figures_after_a_way_through_json() -> None:
    raw = graph(20_000, 20_100)
    again = Raw.from_document(json.loads(json.dumps(raw.document())))
    assert again == raw
    assert assess(again) == assess(raw)


def test_kinds_are_not_compared() -> None:
    plain = Raw(PLAIN, DESTINATION, 1, 1, (), times(150_000), (), times(50_000))
    assert speedup(plain, graph(20_000, 20_000)) is None
    assert speedup(None, plain) is None
    assert speedup(graph(40_000, 40_000), graph(20_000, 20_000)) == pytest.approx(2.0)


@pytest.mark.parametrize(("reference_ns", "own_ns"), [(-30_000, 20_000), (20_000, -1), (0, 5)])
def test_where_noise_is_larger_than_a_value_there_is_no_speedup(
    reference_ns: int, own_ns: int
) -> None:
    assert speedup(graph(reference_ns, 20_000), graph(own_ns, 20_000)) is None


@pytest.mark.parametrize("missing", ["rows", "gated", "null_rows", "null_gated"])
def test_nothing_follows_where_a_series_is_missing(missing: str) -> None:
    with pytest.raises(OutsideError, match=missing):
        assess(replace(graph(20_000, 20_000), **{missing: ()}))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"outputs": "somewhere"},
        {"calls_per_row": True},
        {"calls_gated": "64"},
        {"rows": [{"round": 0}]},
    ],
)
def test_documents_that_hold_something_else_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(OutsideError):
        Raw.from_document({**graph(20_000, 20_000).document(), **change})
