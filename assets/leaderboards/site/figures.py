"""The plots of the site: what each shows, in which unit, of which group and of how many values.

A figure carries its numbers, which are written as CSV and JSON beside the page that shows it.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from assets.answers.standings import Group
from assets.answers.units import count_text, latency_text, time_text
from assets.answers.values import json_value
from assets.leaderboards.site.scales import Axis
from assets.leaderboards.site.svg import Point, Series, Style, legend_mark, plot

_MOST_SERIES = 8

LATENCY = Axis("latency", kind="log", quantity="latency_ns")


@dataclass(frozen=True)
class Figure:
    """A plot with its numbers; `name` is part of the addresses of its data files."""

    name: str
    title: str
    caption: str
    image: Markup
    legend: tuple[tuple[Markup, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def csv(self) -> str:
        """The numbers as RFC 4180 text with a header."""
        return csv_text(self.columns, self.rows)

    def json(self) -> str:
        """The numbers as JSON, with what they are."""
        rows = [dict(zip(self.columns, map(json_value, row), strict=True)) for row in self.rows]
        return (
            json.dumps({"title": self.title, "caption": self.caption, "rows": rows}, indent=1)
            + "\n"
        )


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180 text with a header; null is an empty field."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if v is None else json_value(v) for v in row] for row in rows)
    return stream.getvalue()


def latency_by_size(
    name: str, operation: str, gpu_product: str, groups: Sequence[Group]
) -> Figure | None:
    """Median latency of each implementation against the axis that varies most over workloads."""
    axis = _most_varied([_axes(group) for group in groups])
    if axis is None:
        return None
    by_solution: dict[str, list[tuple[int, int, Group]]] = {}
    for group in groups:
        size = _axes(group).get(axis, 0)
        for entry in group.ranking:
            if size > 0:
                by_solution.setdefault(entry.solution, []).append((size, entry.median_ns, group))
    if not by_solution:
        return None
    wins = {
        solution: sum(
            group.ranking[0].solution == solution for _, _, group in found if group.ranking
        )
        for solution, found in by_solution.items()
    }
    ordered = sorted(by_solution, key=lambda one: (-wins[one], -len(by_solution[one]), one))
    shown = ordered[:_MOST_SERIES]
    series = [
        Series(
            solution,
            tuple(
                Point(size, median, f"{axis}={size}, {latency_text(median)}")
                for size, median, _ in sorted(by_solution[solution], key=lambda item: item[:2])
            ),
            # Several workloads may share a size; a line through them would mean nothing.
            _style([size for size, _, _ in by_solution[solution]]),
        )
        for solution in shown
    ]
    count = sum(len(one.points) for one in series)
    left = len(ordered) - len(shown)
    return _figure(
        name,
        f"Latency by {axis} on {gpu_product}",
        f"{operation} on {gpu_product}: median latency (µs or ms, logarithmic) of "
        f"{count_text(len(shown), 'implementation')} in {count_text(len(groups), 'group')}, "
        f"{count_text(count, 'value')}"
        + (f"; {left} more with fewer wins are in the numbers." if left else "."),
        Axis(f"{axis} (logarithmic)", kind="log"),
        LATENCY,
        series,
        ("solution", axis, "workload", "median_ns", "comparison_group"),
        [
            (solution, size, group.axes, median, group.strict_group)
            for solution in ordered
            for size, median, group in sorted(by_solution[solution], key=lambda item: item[:2])
        ],
    )


def record_history(name: str, group: str, events: Sequence[Mapping[str, Any]]) -> Figure | None:
    """How the record of a comparison group fell over time; one moment alone is no history."""
    if len({event["at"] for event in events}) < 2:
        return None
    points = tuple(
        Point(
            _seconds(event["at"]),
            event["primary_value"],
            f"{latency_text(event['primary_value'])} by {event['solution']}, "
            f"{time_text(event['at'])}",
        )
        for event in events
    )
    return _figure(
        name,
        "Record over time",
        f"{group}: latency of the fastest run so far (µs or ms, logarithmic), by the time at which "
        f"it was observed (UTC); {count_text(len(events), 'record')}.",
        Axis(_observed([event["at"] for event in events]), quantity="time"),
        LATENCY,
        [Series("record", points, "steps")],
        ("at", "primary_value_ns", "solution", "author", "run_digest", "cause"),
        [
            tuple(
                event[column]
                for column in ("at", "primary_value", "solution", "author", "run_digest", "cause")
            )
            for event in events
        ],
    )


def fast_p(
    name: str, gpu_product: str, curves: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Figure | None:
    """Share of groups in which each author is at least p times as fast as the baseline."""
    if not curves:
        return None
    ordered = sorted(curves, key=lambda one: (-_at_one(curves[one]), one))
    shown = ordered[:_MOST_SERIES]
    series = [
        Series(
            f"{author} ({count_text(curves[author][0]['groups_compared'], 'group')})",
            tuple(
                Point(row["p"], row["fast_p"], f"p={row['p']:g}: {row['fast_p']:.0%}")
                for row in curves[author]
            ),
        )
        for author in shown
    ]
    of_baseline = next(iter(curves.values()))[0]["groups_of_baseline"]
    left = len(ordered) - len(shown)
    return _figure(
        name,
        f"fast_p on {gpu_product}",
        f"All operation families on {gpu_product}: share of the groups that an author tried in "
        "which its best implementation is at least p times as fast as the baseline's (no unit), "
        "medians against medians; a group that it failed counts as 0. A group is one workload with "
        "its inputs; FlashInfer-Bench's own curve counts each solution over workloads that agree "
        "in their axes, so it is another curve. The baseline passed "
        f"{count_text(of_baseline, 'group')}"
        + (f"; {left} more authors are in the numbers." if left else "."),
        Axis("p, speed-up over the baseline (logarithmic)", kind="log"),
        Axis("share of groups", quantity="share"),
        series,
        ("author", "p", "fast_p", "groups_compared", "groups_of_baseline", "coverage"),
        [
            (
                author,
                *(
                    row[column]
                    for column in (
                        "p",
                        "fast_p",
                        "groups_compared",
                        "groups_of_baseline",
                        "coverage",
                    )
                ),
            )
            for author in ordered
            for row in curves[author]
        ],
    )


def raw_samples(name: str, run: str, samples: Mapping[str, Sequence[float]]) -> Figure | None:
    """Every latency that a rerun kept, in the order of its calls."""
    rows = [
        (series, call, value)
        for series, values in samples.items()
        for call, value in enumerate(values, start=1)
    ]
    if not rows:
        return None
    series = [
        Series(
            f"{one} ({count_text(len(values), 'sample')})",
            tuple(
                Point(call, value, f"call {call}, {latency_text(value)}")
                for call, value in enumerate(values, start=1)
            ),
            "dots",
        )
        for one, values in list(samples.items())[:_MOST_SERIES]
    ]
    return _figure(
        name,
        "Raw samples",
        f"Run {run}: latency of each measured call (µs or ms), {count_text(len(rows), 'sample')}.",
        Axis("call"),
        Axis("latency", quantity="latency_ns"),
        series,
        ("series", "call", "latency_ns"),
        rows,
    )


def _figure(
    name: str,
    title: str,
    caption: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    columns: Sequence[str],
    rows: Iterable[tuple[object, ...]],
) -> Figure:
    legend = tuple((legend_mark(number), one.name) for number, one in enumerate(series))
    image = plot(f"{title}. {caption}", x, y, series)
    return Figure(name, title, caption, image, legend, tuple(columns), tuple(rows))


def _axes(group: Group) -> dict[str, int]:
    pairs = (part.strip().partition("=") for part in group.axes.split(","))
    return {name: int(value) for name, mark, value in pairs if mark}


def _most_varied(axes: Sequence[Mapping[str, int]]) -> str | None:
    values: dict[str, set[int]] = {}
    for one in axes:
        for name, value in one.items():
            values.setdefault(name, set()).add(value)
    varied = [name for name, found in values.items() if len(found) > 1]
    return max(varied, key=lambda name: (len(values[name]), name), default=None)


def _style(sizes: Sequence[int]) -> Style:
    return "dots" if len(set(sizes)) < len(sizes) else "line"


def _observed(times: Sequence[datetime]) -> str:
    """The label of a time axis; the day, where the ticks do not tell it."""
    days = {time.date() for time in times}
    return f"observed on {min(days)} (UTC)" if len(days) == 1 else "observed (UTC)"


def _seconds(at: datetime) -> float:
    return at.replace(tzinfo=UTC).timestamp()


def _at_one(rows: Sequence[Mapping[str, Any]]) -> float:
    return next((float(row["fast_p"]) for row in rows if row["p"] == 1), 0.0)
