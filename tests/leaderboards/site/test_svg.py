"""Plots: values lie where they belong, and ticks say so."""

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.leaderboards.site.scales import Axis, fitted
from assets.leaderboards.site.svg import HEIGHT, WIDTH, Point, Series, plot

_FINITE = st.floats(min_value=-1e12, max_value=1e12)
_POSITIVE = st.floats(min_value=1e-3, max_value=1e12)


@given(st.lists(_FINITE, min_size=1, max_size=20))
def test_a_linear_scale_keeps_order_and_stays_inside(values: list[float]) -> None:
    scale = fitted(Axis("a"), values)
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)


@given(st.lists(_POSITIVE, min_size=1, max_size=20))
def test_a_logarithmic_scale_keeps_order_and_stays_inside(values: list[float]) -> None:
    scale = fitted(Axis("a", kind="log"), values)
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)
    assert all(0 <= scale.place(tick) <= 1 for tick in scale.ticks)


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_scale() -> None:
    scale = fitted(Axis("a", kind="log"), [1, 10, 100])
    assert scale.place(10) - scale.place(1) == pytest.approx(scale.place(100) - scale.place(10))


@given(_POSITIVE, st.floats(min_value=1, max_value=1e4))
def test_a_logarithmic_scale_has_ticks_to_measure_by(low: float, factor: float) -> None:
    scale = fitted(Axis("a", kind="log"), [low, low * factor])
    assert 2 <= len(scale.ticks) <= 12
    assert len({round(scale.place(tick), 6) for tick in scale.ticks}) == len(scale.ticks)


def test_a_logarithmic_scale_takes_no_zero() -> None:
    with pytest.raises(ValueError, match="positive"):
        fitted(Axis("a", kind="log"), [0, 1])


def test_latency_ticks_name_their_unit() -> None:
    scale = fitted(Axis("latency", kind="log", quantity="latency_ns"), [2e4, 3e6])
    assert [scale.tick_text(tick) for tick in scale.ticks] == [
        "20 µs",
        "50 µs",
        "100 µs",
        "200 µs",
        "500 µs",
        "1 ms",
        "2 ms",
    ]


@pytest.mark.parametrize(
    ("span_s", "expected"),
    [(2, "00:00:00.500"), (100, "00:00:25"), (7_200, "01-01 00:30"), (10 * 86_400, "2026-01-03")],
)
def test_time_ticks_are_as_precise_as_the_span(span_s: int, expected: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    scale = fitted(Axis("at", quantity="time"), [start, start + span_s])
    assert scale.tick_text(start + span_s / 4) == expected


def test_a_plot_is_well_formed_and_names_are_text() -> None:
    name = "<script>&\"'"
    image = plot(name, Axis(name), Axis("y"), [Series(name, (Point(1, 2, name), Point(3, 4)))])
    root = ElementTree.fromstring(str(image))
    assert root.get("aria-label") == name
    assert root.get("viewBox") == f"0 0 {WIDTH} {HEIGHT}"
    assert [element.text for element in root.iter("title")] == [f"{name}: {name}", name]
    assert not list(root.iter("script"))
