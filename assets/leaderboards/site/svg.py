"""Plots as SVG that is put into a page: sharp at any size, readable in light and dark.

Colours come from the page's style sheet (classes `s0` to `s7`), and each series has a mark of its
own, so that nothing is told by colour alone. Every text is escaped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from assets.leaderboards.site.scales import Axis, Scale, fitted

Style = Literal["line", "steps", "dots"]

WIDTH, HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 16, 14, 52
_COLOURS = 8
_MOST_MARKS = 400


@dataclass(frozen=True)
class Point:
    """A value with what is said when it is pointed at."""

    x: float
    y: float
    text: str = ""


@dataclass(frozen=True)
class Series:
    """Points under one name."""

    name: str
    points: tuple[Point, ...]
    style: Style = "line"


def plot(name: str, x: Axis, y: Axis, series: Sequence[Series]) -> Markup:
    """A plot; `name` says what it shows to those who cannot see it.

    Raises:
        ValueError: no point at all.
    """
    points = [point for one in series for point in one.points]
    across = fitted(x, [point.x for point in points])
    up = fitted(y, [point.y for point in points])
    parts = [*_grid(across, up), *(_series(n, one, across, up) for n, one in enumerate(series))]
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{name}">{body}</svg>').format(
        w=WIDTH, h=HEIGHT, name=name, body=Markup("").join(parts)
    )


def mark(number: int, x: float = 7, y: float = 7, text: str = "") -> Markup:
    """The mark of a series, as it stands in the plot and in the legend."""
    title = Markup("<title>{}</title>").format(text) if text else ""
    return Markup('<path class="mark s{}" d="{}">{}</path>').format(
        number % _COLOURS, _shape(number % 4, x, y), title
    )


def legend_mark(number: int) -> Markup:
    """A small picture of a series' mark."""
    return Markup('<svg viewBox="0 0 14 14" class="key" aria-hidden="true">{}</svg>').format(
        mark(number)
    )


def _shape(number: int, x: float, y: float) -> str:
    if number == 0:
        return f"M{x - 3.5:.1f} {y:.1f}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"
    if number == 1:
        return f"M{x - 3.2:.1f} {y - 3.2:.1f}h6.4v6.4h-6.4z"
    if number == 2:
        return f"M{x:.1f} {y - 4.4:.1f}l4.2 7.4h-8.4z"
    return f"M{x:.1f} {y - 4.6:.1f}l4.6 4.6l-4.6 4.6l-4.6 -4.6z"


def _at(across: Scale, up: Scale, x: float, y: float) -> tuple[float, float]:
    return (
        _LEFT + across.place(x) * (WIDTH - _LEFT - _RIGHT),
        HEIGHT - _BOTTOM - up.place(y) * (HEIGHT - _TOP - _BOTTOM),
    )


def _grid(across: Scale, up: Scale) -> Iterable[Markup]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for tick in up.ticks:
        _, y = _at(across, up, across.low, tick)
        yield Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(_LEFT, y, right)
        yield _text(_LEFT - 8, y + 4, up.tick_text(tick), "end")
    for tick in across.ticks:
        x, _ = _at(across, up, tick, up.low)
        yield Markup('<path class="grid" d="M{:.1f} {}V{}"/>').format(x, _TOP, bottom)
        yield _text(x, bottom + 18, across.tick_text(tick), "middle")
    yield Markup('<path class="axis" d="M{} {}V{}H{}"/>').format(_LEFT, _TOP, bottom, right)
    yield _text((_LEFT + right) / 2, HEIGHT - 8, across.axis.label, "middle")
    yield Markup(
        '<text transform="translate(14 {:.0f}) rotate(-90)" text-anchor="middle">{}</text>'
    ).format((_TOP + bottom) / 2, up.axis.label)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, text
    )


def _series(number: int, series: Series, across: Scale, up: Scale) -> Markup:
    places = [_at(across, up, point.x, point.y) for point in series.points]
    body = Markup("")
    if series.style != "dots" and len(places) > 1:
        body += Markup('<path class="line s{}" d="{}"/>').format(
            number % _COLOURS, _line(places, steps=series.style == "steps")
        )
    every = -(-len(places) // _MOST_MARKS)
    for (x, y), point in list(zip(places, series.points, strict=True))[::every]:
        body += mark(number, x, y, f"{series.name}: {point.text}" if point.text else series.name)
    return Markup("<g>{}</g>").format(body)


def _line(places: Sequence[tuple[float, float]], *, steps: bool) -> str:
    first, *rest = places
    path = f"M{first[0]:.1f} {first[1]:.1f}"
    for x, y in rest:
        path += f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}"
    return path
