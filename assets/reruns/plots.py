"""The distribution of a run's latencies as a small SVG, and tables of verdicts, as Markdown."""

import base64
from collections.abc import Sequence

from assets.reruns.result_rows import ImportedRun
from assets.reruns.results import Imported
from assets.traces.untrusted_text import markdown

_WIDTH, _HEIGHT, _BINS = 240, 48, 40


def latency_svg(latencies_ns: Sequence[int]) -> str:
    """A histogram between the least and the 99th percentile, the median marked; times in us."""
    values = sorted(latencies_ns)
    low, high = values[0], values[min(len(values) - 1, len(values) * 99 // 100)]
    span = max(high - low, 1)
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, (value - low) * _BINS // span)] += 1
    width = _WIDTH / _BINS
    bars = "".join(
        f'<rect x="{number * width:.1f}" y="{_HEIGHT - _HEIGHT * count / max(counts):.1f}" '
        f'width="{width - 0.5:.1f}" height="{_HEIGHT * count / max(counts):.1f}"/>'
        for number, count in enumerate(counts)
    )
    place = min(_WIDTH, (values[len(values) // 2] - low) * _WIDTH / span)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT + 14}">'
        f'<g fill="#5b7fa6">{bars}</g>'
        f'<line x1="{place:.1f}" x2="{place:.1f}" y1="0" y2="{_HEIGHT}" stroke="#c0392b"/>'
        f'<text y="{_HEIGHT + 12}" font-size="10">{low / 1000:.2f} us</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 12}" font-size="10" text-anchor="end">'
        f"{high / 1000:.2f} us</text></svg>"
    )


def verdict_table(imported: Imported) -> str:
    """One row per run: outcome, times in us, verdict, and the run that it reproduces."""
    lines = [
        "| run | solution | outcome | median us | reported us | ratio | verdict | evidence |",
        "|---|---|---|---:|---:|---:|---|---|",
    ]
    for run in imported.runs:
        ratio = run.comparison.ratio
        lines.append(
            f"| {_name(imported, run)} | {markdown(run.solution)} | {run.status} | "
            f"{_us(run.median_ns)} | {_us(run.reported_ns)} | "
            f"{'' if ratio is None else f'{ratio:.3f}'} | {run.comparison.verdict} | "
            f"{_evidence(run)} |"
        )
    return "\n".join(lines)


def distribution_table(imported: Imported) -> str:
    """One histogram per measured run."""
    lines = ["| solution | latency |", "|---|---|"]
    for run in imported.runs:
        if run.latencies_ns:
            encoded = base64.b64encode(latency_svg(run.latencies_ns).encode()).decode()
            picture = f"![latency](data:image/svg+xml;base64,{encoded})"
            lines.append(f"| {markdown(run.solution)} | {picture} |")
    return "\n".join(lines)


def _us(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / 1000:.2f}"


def _name(imported: Imported, run: ImportedRun) -> str:
    return "" if imported.trial else f"`{run.run_digest[7:19]}`"


def _evidence(run: ImportedRun) -> str:
    because = ", ".join(run.unverified_because)
    level = run.evidence_level or "a trial"
    return f"{level} ({because})" if because else level
