"""Recompute what the public index states of its runs, from the manifests in a catalog export.

Digests and keys come from `assets.manifests`, ranks, record events and caveats from the files
under `sql/` that the warehouse uses. What is equal is counted; what is not is named, and so are
the mistakes that the export carries although every digest in it is right.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assets.leaderboards.catalog_export import (
    CatalogExport,
    CatalogObjects,
    Row,
    read_catalog_export,
)
from assets.leaderboards.catalog_tables import entry_of, instant, load_tables
from assets.leaderboards.derive import derive
from assets.manifests.canonical import canonical_json, identity_digest, sha256_digest
from assets.manifests.runs import NO_METRIC_KEY, comparison_key

_EXAMPLES = 5
_CENTRAL_STATISTICS = ("median", "mean")
_REFERENCE_SPREAD = 1.5
_DERIVED = ("ranked_runs", "record_events", "caveats", "caveat_codes")


@dataclass
class Comparison:
    """How often a stated value equals the recomputed one; examples of where it does not."""

    name: str
    equal: int = 0
    unequal: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, what: str, stated: object, recomputed: object) -> None:
        """Compare one value."""
        if stated == recomputed:
            self.equal += 1
            return
        self.unequal += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{what}: stated {stated}, recomputed {recomputed}")


@dataclass(frozen=True)
class Mistake:
    """A kind of mistake in the export: how many rows have it, of how many, and some of them."""

    code: str
    explanation: str
    count: int
    of: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class CatalogVerification:
    """What came of a verification."""

    path: Path
    rows: Mapping[str, int]
    comparisons: tuple[Comparison, ...]
    mistakes: tuple[Mistake, ...]

    @property
    def is_equal(self) -> bool:
        """Whether everything stated was recomputed to the last row."""
        return all(comparison.unequal == 0 for comparison in self.comparisons)


def verify_catalog(path: Path) -> CatalogVerification:
    """Verify a downloaded export (`.jsonl` or `.jsonl.zst`).

    Raises:
        CatalogExportError: the file is no catalog export.
    """
    export = read_catalog_export(path)
    objects = CatalogObjects(export)
    with duckdb.connect() as connection:
        given = load_tables(connection, export, objects)
        derive(connection, _DERIVED, given)
        comparisons = [
            *_manifest_digests(export),
            *_run_keys(export, objects),
            _record_events(connection, export),
            _leaders(connection, export),
        ]
        mistakes = tuple(_mistakes(connection, export, objects))
    return CatalogVerification(path, dict(export.counts), tuple(comparisons), mistakes)


def _manifest_digests(export: CatalogExport) -> Iterator[Comparison]:
    for table, column in (
        ("operations", "semanticDigest"),
        ("workloads", "workloadDigest"),
        ("implementations", "implementationDigest"),
    ):
        comparison = Comparison(f"{table}.{column}")
        for row in export.rows(table):
            comparison.add(row["id"], row[column], _digest(row["manifest"]))
        yield comparison


def _digest(manifest: Mapping[str, Any]) -> str:
    return identity_digest(manifest["kind"], manifest["spec"])


def _run_keys(export: CatalogExport, objects: CatalogObjects) -> Iterable[Comparison]:
    names = ("runDigest", "protocolKey", "environmentKey", "correctnessKey", "comparisonKey")
    more = ("primaryValue", "implementation digest in the manifest", "workload digest in it")
    found = {name: Comparison(f"benchmark_runs.{name}") for name in (*names, *more)}
    for row in export.benchmark_runs:
        spec = row["manifest"]["run"]["spec"]
        workload = objects.workloads[row["workloadId"]]
        protocol = _digest(row["manifest"]["protocol"])
        environment = _digest(row["manifest"]["environment"])
        correctness = _correctness_key(workload)
        statistic, value = _primary(row)
        recomputed = {
            "runDigest": _digest(row["manifest"]["run"]),
            "protocolKey": protocol,
            "environmentKey": environment,
            "correctnessKey": correctness,
            "comparisonKey": comparison_key(
                operation=workload["manifest"]["spec"]["operationSpecDigest"],
                workload=workload["workloadDigest"],
                protocol=protocol,
                environment=environment,
                correctness=correctness,
                metric=NO_METRIC_KEY if value is None else f"latency:{statistic}:ns",
            ),
            "primaryValue": value,
        }
        for name, expected in recomputed.items():
            found[name].add(row["id"], row[name], expected)
        implementation = objects.implementations[row["implementationId"]]
        found[more[1]].add(
            row["id"], spec["implementationDigest"], implementation["implementationDigest"]
        )
        found[more[2]].add(row["id"], spec["workloadDigest"], workload["workloadDigest"])
    return found.values()


def _correctness_key(workload: Row) -> str:
    correctness = workload["manifest"]["spec"]["correctness"]
    return sha256_digest(canonical_json({"correctness": correctness}))


def _primary(row: Row) -> tuple[str | None, float | None]:
    """The protocol's statistic of the latency, else the central one that is there, in ns."""
    latencies = row["manifest"]["run"]["spec"].get("timing", {}).get("latencyNs", {})
    wanted = row["manifest"]["protocol"]["spec"]["measurement"]["primaryStatistic"]
    for statistic in (wanted, *_CENTRAL_STATISTICS):
        if statistic in latencies:
            return statistic, latencies[statistic]
    return None, None


def _record_events(connection: duckdb.DuckDBPyConnection, export: CatalogExport) -> Comparison:
    found = {
        (row[0], row[1]): row[2:]
        for row in connection.sql(
            'select comparison_key, run_digest, previous_run_digest, "at" from record_events'
        ).fetchall()
    }
    comparison = Comparison("record_events")
    for event in export.record_events:
        key = (event["comparisonKey"], event["runId"])
        stated = (event["previousRunId"], instant(event["at"]))
        comparison.add(" ".join(key), stated, found.pop(key, None))
    for key, recomputed in found.items():
        comparison.add(" ".join(key), None, recomputed)
    return comparison


def _leaders(connection: duckdb.DuckDBPyConnection, export: CatalogExport) -> Comparison:
    """The export states no ranks but that of each group's record holder, which is 1."""
    ranks = dict(connection.sql("select run_digest, rank from ranked_runs").fetchall())
    displaced = {event["previousRunId"] for event in export.record_events}
    comparison = Comparison("rank of each group's record holder")
    for event in export.record_events:
        if event["runId"] not in displaced:
            comparison.add(event["comparisonKey"], 1, ranks.get(event["runId"]))
    return comparison


def _mistakes(
    connection: duckdb.DuckDBPyConnection, export: CatalogExport, objects: CatalogObjects
) -> Iterator[Mistake]:
    runs = {row["id"]: row for row in export.benchmark_runs}
    explanations = dict(
        connection.sql("select code, explanation from caveat_codes order by all").fetchall()
    )
    for code, explanation in explanations.items():
        rows = connection.sql(
            "select run_digest, value from caveats where code = $code"
            " order by value desc nulls last, run_digest",
            params={"code": code},
        ).fetchall()
        examples = [
            _describe(runs[run], objects) + (f" ({value:g})" if value is not None else "")
            for run, value in rows[:_EXAMPLES]
        ]
        yield Mistake(code, explanation, len(rows), len(runs), tuple(examples))
    yield _merged_workloads(connection, export)
    yield _repeated_pairs(connection)
    yield _references(connection)


def _describe(run: Row, objects: CatalogObjects) -> str:
    implementation = objects.implementations[run["implementationId"]]["title"]
    benchmark = run["manifest"]["run"]["spec"].get("sourceNative", {}).get("benchmark")
    return f"{run['runDigest'][:19]} {implementation} on {benchmark} {entry_of(run)}"


def _merged_workloads(connection: duckdb.DuckDBPyConnection, export: CatalogExport) -> Mistake:
    merged = connection.sql(
        "select workload_digest, input_fingerprints from workloads"
        " where len(input_fingerprints) > 1 order by len(input_fingerprints) desc, workload_digest"
    ).fetchall()
    titles = {row["id"]: row["manifest"]["metadata"].get("title") for row in export.workloads}
    return Mistake(
        "MERGED_WORKLOADS",
        f"{len(merged)} workload digests stand for {sum(len(found) for _, found in merged)} entries"
        " that differ only in tensor files.",
        len(merged),
        len(export.workloads),
        tuple(f"{titles[name]}: {', '.join(found)}" for name, found in merged[:_EXAMPLES]),
    )


def _repeated_pairs(connection: duckdb.DuckDBPyConnection) -> Mistake:
    pairs = connection.sql(
        "select count(*) as runs, max(primary_value) / min(primary_value) as spread"
        " from runs group by implementation_digest, workload_digest order by spread desc nulls last"
    ).fetchall()
    repeated = [(runs, spread) for runs, spread in pairs if runs > 1]
    examples = [
        f"{runs} runs, up to {spread:.2f} times apart" for runs, spread in repeated[:_EXAMPLES]
    ]
    return Mistake(
        "REPEATED_PAIRS",
        "Pairs of implementation and workload that have several runs, each ranked on its own.",
        len(repeated),
        len(pairs),
        tuple(examples),
    )


def _references(connection: duckdb.DuckDBPyConnection) -> Mistake:
    groups = connection.sql(
        "select max(reference_latency_ms) / min(reference_latency_ms) as spread from runs"
        " inner join environments using (environment_digest)"
        " where reference_latency_ms > 0"
        " group by workload_digest, gpu_product having count(*) > 1 order by spread desc"
    ).fetchall()
    apart = [spread for (spread,) in groups if spread > _REFERENCE_SPREAD]
    return Mistake(
        "REFERENCES_APART",
        "Pairs of workload and device whose traces state reference latencies more than"
        f" {_REFERENCE_SPREAD} times apart.",
        len(apart),
        len(groups),
        tuple(f"{spread:.1f} times apart" for spread in apart[:_EXAMPLES]),
    )


def render(verification: CatalogVerification) -> RenderableType:
    """The verification as tables for a terminal."""
    stated = Table(title=f"{verification.path.name}: stated and recomputed", title_justify="left")
    stated.add_column("what")
    stated.add_column("equal", justify="right")
    stated.add_column("unequal", justify="right")
    for comparison in verification.comparisons:
        style = None if comparison.unequal == 0 else "bold red"
        stated.add_row(
            comparison.name, f"{comparison.equal:,}", f"{comparison.unequal:,}", style=style
        )
    unequal = [
        Text(f"{comparison.name} {example}", style="red")
        for comparison in verification.comparisons
        for example in comparison.examples
    ]
    mistakes = Table(
        title="mistakes that the digests do not show", title_justify="left", show_lines=True
    )
    for column in ("mistake", "rows", "what it means, and examples"):
        mistakes.add_column(column, justify="right" if column == "rows" else "left")
    for mistake in verification.mistakes:
        if mistake.count:
            mistakes.add_row(
                mistake.code,
                f"{mistake.count:,} of {mistake.of:,}",
                Text("\n".join([mistake.explanation, *(f"· {e}" for e in mistake.examples)])),
            )
    return Group(stated, *unequal, mistakes)
