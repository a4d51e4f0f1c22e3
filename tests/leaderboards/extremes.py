"""Rows that a table's contract admits and nobody expects: each value at the end of its type.

A contract says names and types, so that is all that these rows keep to: any column may be empty,
any text may be anything, any number as large as its type. Each value stands in a small index of
its own, so that it meets the baseline, the controlled runs and the corrections beside it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

import pyarrow as pa

from assets.tables.contracts import PUBLISHED
from tests.leaderboards.index import Index, Row, at

_HUGE = 2_000_000_000
_TEXTS = (
    "", " ", "\x00", "x" * 70_000, "\U0010ffff", "0", "-1", "9" * 40, "1e400", "inf", "null",
    "true", "passed", "{", "[]", "[1]", '"text"', "{}", "sha256:", "NVIDIA H200", "baseline",
)  # fmt: skip
_JSON_TEXTS = (
    '{"m": null}',
    '{"m": "x"}',
    '{"m": {}}',
    '{"m": -4}',
    '{"m": 1.5}',
    '{"m": 1e400}',
    f'{{"m": {_HUGE}, "n": {_HUGE}}}',
    f'{{"m": {2**53 - 1}, "n": {2**53 - 1}}}',
    f'{{"m": {2**63}}}',
    f'{{"m": {10**30}}}',
    '{"spec": 1}',
    '{"spec": {"tensors": [1], "outputs": {"y": 1}}}',
    '{"spec": {"tensors": {"x": 1}, "outputs": [1, null, {}, {"tensor": 1}]}}',
    '{"spec": {"tensors": {"x": {"dtype": 1, "shape": 1}}, "outputs": [{"tensor": {"shape": 1}}]}}',
    '{"spec": {"tensors": {"x": {"dtype": "fp32", "shape": [null, -1, "m", 1.5]}}, '
    '"outputs": [{"tensor": {"dtype": "fp32", "shape": [null, -1, "m", 1.5]}}]}}',
    f'{{"spec": {{"tensors": {{"x": {{"dtype": "fp32", "shape": [{_HUGE}, {_HUGE}, {_HUGE}]}}}}, '
    f'"outputs": [{{"tensor": {{"dtype": "fp32", "shape": ["{_HUGE}", "m", "{10**30}"]}}}}]}}}}',
    '{"spec": {"tensors": {'
    + ", ".join(f'"x{n}": {{"dtype": "fp64", "shape": [{2**53 - 1}, 100]}}' for n in range(50))
    + '}, "outputs": ['
    + ", ".join(f'{{"tensor": {{"dtype": "int4", "shape": ["{2**62}"]}}}}' for _ in range(50))
    + "]}}",
)
_INTEGERS_64 = (0, 1, -1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 513, 2**63 - 1, 1 - 2**63, -(2**63))
_NUMBERS = (
    0.0, -0.0, -1.0, 5e-324, -5e-324, 2.0**63, 1.7976931348623157e308, -1.7976931348623157e308,
    math.inf, -math.inf, math.nan,
)  # fmt: skip
_TIMES = (datetime.min, datetime(1582, 10, 15), datetime(1970, 1, 1), datetime.max)

_STAMPED = ("publication_id", "published_at")
_NAMES = (
    "external_id", "workload_uuid", "slug", "series", "comparison_key", "input_fingerprint",
    "session_id", "bundle_id", "correction_id", "snapshot_id", "path", "revision",
    "source_revision",
)  # fmt: skip


def values_of(column: pa.Field) -> list[object]:
    """Values of a column's type that a statement may stumble over."""
    kind = column.type
    if pa.types.is_string(kind):
        is_json = column.name.endswith("_json")
        return [None, *_TEXTS, *(_JSON_TEXTS if is_json else ())]
    if pa.types.is_int64(kind):
        return [None, *_INTEGERS_64]
    if pa.types.is_int32(kind):
        return [None, 0, -1, 2**31 - 1, -(2**31)]
    if pa.types.is_float64(kind):
        return [None, *_NUMBERS]
    if pa.types.is_boolean(kind):
        return [None, True, False]
    if pa.types.is_timestamp(kind):
        return [None, *_TIMES]
    if pa.types.is_list(kind):
        return [None, [], [None], ["", ""], ["x" * 70_000]]
    raise TypeError(f"{column.name}: no extremes are written down for {kind}")


def ordinary() -> Index:
    """An index in which every table has rows that belong together."""
    index = Index()
    index.add(
        "operations",
        constant_axes_json='{"k": 8}',
        canonical_json='{"spec": {"outputs": [{"tensor": {"dtype": "fp32", "shape": ["m"]}}]}}',
    )
    index.add(
        "workloads",
        external_id="u",
        axes_json='{"m": 4}',
        canonical_json='{"spec": {"tensors": {"x": {"dtype": "fp32", "shape": [4, 8]}}}}',
    )
    for author, name in (("author", "implementation"), ("baseline", "other")):
        index.add(
            "implementations",
            implementation_digest=name,
            author_directory=author,
            source_revision="r1",
            path=f"{name}.json",
        )
        common = {
            "implementation_digest": name,
            "author_directory": author,
            "workload_uuid": "u",
            "reference_latency_ms": 2.0,
        }
        index.run(f"run of {name}", 20, **common)
        index.run(
            f"rerun of {name}",
            21,
            protocol_digest="controlled",
            comparison_key="controlled group",
            evidence_level="verified",
            source_native=False,
            source="kernelindex-controlled",
            uncertainty_low_ns=20,
            uncertainty_high_ns=22,
            **common,
        )
        index.add(
            "reproductions",
            run_digest=f"rerun of {name}",
            reproduces_digest=f"run of {name}",
            session_id="session",
            reference_ns=40,
            ratio=1.05,
            ratio_low=1.0,
            ratio_high=1.1,
        )
        for call in range(4):
            index.add(
                "rerun_samples",
                run_digest=f"rerun of {name}",
                series="device",
                call=call,
                round=call % 2,
                device_ns=20 + call,
            )
        index.file("r1", f"{name}.json", f"content of {name}", inputs=name)
        index.add(
            "measurements", run_digest=f"run of {name}", metric="latency", statistic="mean",
            value=20.0,
        )  # fmt: skip
    index.run("failed", None, implementation_digest="implementation", workload_uuid="u")
    index.add("environments")
    index.add("protocols", protocol_digest="protocol")
    index.add("projects", project_digest="project")
    index.add("artifacts", artifact_digest="artifact", size_bytes=1)
    index.add("quarantine", reason="BAD", severity="error", path="implementation.json")
    index.revision("r1", "2026-01-01")
    index.correction("attest", "run of implementation")
    return index


@dataclass(frozen=True)
class Extreme:
    """One value in one column of the row at this place of a table."""

    table: str
    place: int
    column: str
    value: object


def extremes_of(table: str) -> Iterator[Extreme]:
    """Every value of every column: numbers and times in each of the table's ordinary rows, texts
    in the first."""
    for place, _ in enumerate(ordinary().rows[table]):
        for column in PUBLISHED[table]:
            is_text = pa.types.is_string(column.type) or pa.types.is_list(column.type)
            if column.name not in _STAMPED and (place == 0 or not is_text):
                for value in values_of(column):
                    yield Extreme(table, place, column.name, value)


def add_world(index: Index, name: str, *extremes: Extreme) -> None:
    """Add an ordinary index to another, all names its own, with some values replaced."""
    rows = ordinary().rows
    for table, found in rows.items():
        for row in found:
            _rename(row, name)
        index.rows[table] += found
    for extreme in extremes:
        rows[extreme.table][extreme.place][extreme.column] = extreme.value


def publish_once(index: Index) -> None:
    """Leave out rows whose key another has, as publication does."""
    for table, rows in index.rows.items():
        columns = publication_key(table)
        once = {tuple(row.get(column) for column in columns): row for row in reversed(rows)}
        index.rows[table] = list(once.values())


def publication_key(table: str) -> list[str]:
    """The columns that tell a new row of a table from a published one, as its statement says."""
    text = resources.files("sql").joinpath("publication", f"{table}.sql").read_text()
    [key] = [line for line in text.splitlines() if line.startswith("-- key: ")]
    return key.removeprefix("-- key: ").split(", ")


def _rename(row: Row, name: str) -> None:
    for column, value in row.items():
        if isinstance(value, str) and (column.endswith("_digest") or column in _NAMES):
            row[column] = f"{value} {name}"
    row["published_at"] = at("2026-01-02")
