"""Statistics of latency series hold for any series."""

from hypothesis import given, settings
from hypothesis import strategies as st

from assets.reruns.worker.statistics import median, quantile, summarize

times = st.lists(st.integers(1, 10**9), min_size=1, max_size=30)
rounds = st.dictionaries(st.integers(0, 5), times, min_size=1)


@given(times)
def test_quantiles_lie_inside_the_series_and_grow(values: list[int]) -> None:
    ordered = sorted(values)
    found = [quantile(ordered, fraction / 10) for fraction in range(11)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (ordered[0], ordered[-1])


@given(times)
def test_the_median_does_not_depend_on_the_order(values: list[int]) -> None:
    assert median(values) == median(values[::-1])


@settings(max_examples=10)
@given(rounds)
def test_a_summary_is_ordered_and_counts_every_sample(series: dict[int, list[int]]) -> None:
    summary = summarize(series)
    assert summary is not None
    assert summary.samples == sum(len(values) for values in series.values())
    assert summary.minimum <= summary.p05 <= summary.median <= summary.p95 <= summary.maximum
    low, high = summary.confidence95
    assert summary.minimum <= low <= high <= summary.maximum
    assert summarize(series) == summary


def test_the_interval_covers_a_jump_between_rounds() -> None:
    """Two rounds on two levels: resampling calls alone would claim to know the median."""
    summary = summarize({0: [77_000] * 50, 1: [88_000] * 50})
    assert summary is not None
    assert summary.confidence95 == (77_000, 88_000)


def test_an_empty_series_has_no_summary() -> None:
    assert summarize({0: []}) is None
