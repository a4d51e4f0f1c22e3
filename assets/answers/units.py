"""Quantities as people read them."""

from datetime import datetime


def latency_text(value_ns: float | None) -> str:
    """`950 ns`, `129.3 µs` or `4.208 ms`; empty for none."""
    if value_ns is None:
        return ""
    if value_ns < 1_000:
        return f"{value_ns:.0f} ns"
    if value_ns < 1_000_000:
        return f"{value_ns / 1_000:.1f} µs"
    return f"{value_ns / 1_000_000:.3f} ms"


def ratio_text(value: float | None) -> str:
    """`32.55x`; empty for none."""
    if value is None:
        return ""
    return f"{value:.3g}x" if value < 0.1 else f"{value:.2f}x"


def count_text(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size_text(size_bytes: float) -> str:
    """`6.3 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def time_text(value: datetime | None) -> str:
    """`2026-11-30 02:44 UTC`; empty for none."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M} UTC"
