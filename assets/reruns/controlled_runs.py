"""One item of a session as a controlled run: its manifest and its rows. Nothing is read or written.

What is published about the run that it reproduces comes from `reported_runs`.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

from assets.manifests import names
from assets.manifests.environments import Environment
from assets.manifests.instants import instant_text
from assets.manifests.kinds import (
    ArtifactReference,
    BenchmarkRun,
    Evidence,
    LatencyStatistics,
    Manifest,
    Metadata,
    RunCorrectness,
    RunMeasurement,
    RunStatus,
    Timing,
)
from assets.manifests.rows import Row, manifest_columns
from assets.manifests.runs import NO_METRIC_KEY, comparison_key, metric_key
from assets.reruns.controlled_protocol import COMPARATOR
from assets.reruns.reported_runs import ReportedRun
from assets.reruns.result_documents import ItemOutcome, Sample
from assets.reruns.selection import RERUN_SOURCE
from assets.reruns.worker.outside import assess

_METRIC = metric_key("latency", "median", "ns")
_STATUS: TypeAdapter[RunStatus] = TypeAdapter(RunStatus)
_COMPARED = ("passed", "incorrect_numerical")


@dataclass(frozen=True)
class PrimaryTime:
    """The time that a run is known by, in ns per call: its median and 95% interval."""

    median_ns: int
    low_ns: int
    high_ns: int
    samples: int


def primary_time(outcome: ItemOutcome) -> PrimaryTime | None:
    """The outside value of an item that passed, under v1 the process's own; None without one."""
    if status_of(outcome) != "passed":
        return None
    outside, assessment = outcome.outside, outcome.outside_assessment
    if outside is not None and assessment is not None:
        low, high = assessment.interval_ns
        return PrimaryTime(
            median_ns=max(1, round(assessment.value_ns)),
            low_ns=max(0, round(low)),
            high_ns=max(1, round(high)),
            samples=len(outside.rows or outside.gated),
        )
    own = outcome.statistics
    if own is None:
        return None
    return PrimaryTime(own.median, *own.confidence95, own.samples)


@dataclass(frozen=True)
class ControlledSession:
    """What the runs of one session have in common."""

    protocol: Manifest
    environment: Environment
    finished_at: datetime
    revision: str


def status_of(outcome: ItemOutcome) -> str:
    """The status of a manifest."""
    return names.STATUSES[outcome.status.value]


def manifest_of(
    outcome: ItemOutcome,
    reported: ReportedRun,
    session: ControlledSession,
    log_digest: str | None,
    raw_digest: str | None,
) -> Manifest:
    """The BenchmarkRun of an item."""
    status = status_of(outcome)
    raw = _reference(raw_digest)
    primary = primary_time(outcome)
    found = outcome.correctness if status in _COMPARED else None
    spec = BenchmarkRun(
        implementation_digest=reported.implementation_digest,
        workload_digest=reported.workload_digest,
        protocol_digest=session.protocol.digest,
        environment_digest=session.environment.digest,
        status=_STATUS.validate_python(status),
        correctness=RunCorrectness(
            comparator=COMPARATOR,
            maximum_absolute_error=_finite(found.max_absolute_error),
            maximum_relative_error=_finite(found.max_relative_error),
            matched_ratio=_finite(found.matched_ratio),
        )
        if found
        else None,
        timing=Timing(
            primary_statistic="median",
            samples=primary.samples,
            latency_ns=_latencies(outcome, primary),
            raw_samples=raw,
        )
        if primary
        else None,
        measurements=[
            RunMeasurement(
                metric=row["metric"],
                unit=row["unit"],
                statistic=row["statistic"],
                value=row["value"],
                sample_count=row["sample_count"],
            )
            for row in _beside(outcome)
        ]
        if primary
        else None,
        evidence=Evidence(logs=_reference(log_digest), raw_samples=raw),
        observed_at=instant_text(session.finished_at),
    )
    title = f"{reported.solution_name} · {reported.definition_name} (controlled)"
    name = names.kebab(f"controlled-{reported.definition_name}-{outcome.item_id}")
    return Manifest.of(spec, Metadata(name=name, title=title[:200]))


def run_row(
    outcome: ItemOutcome,
    reported: ReportedRun,
    session: ControlledSession,
    manifest: Manifest,
    level: str,
) -> Row:
    """Columns of `runs` but for log and place."""
    status = status_of(outcome)
    primary = primary_time(outcome)
    reference_ns = reference_time(outcome) if primary else None
    found = outcome.correctness if status in _COMPARED else None
    metric = _METRIC if primary else NO_METRIC_KEY
    return dict(
        run_digest=manifest.digest,
        operation_digest=reported.operation_digest,
        workload_digest=reported.workload_digest,
        implementation_digest=reported.implementation_digest,
        protocol_digest=session.protocol.digest,
        environment_digest=session.environment.digest,
        comparison_key=comparison_key(
            operation=reported.operation_digest,
            workload=reported.workload_digest,
            protocol=session.protocol.digest,
            environment=session.environment.digest,
            correctness=reported.correctness_key,
            metric=metric,
        ),
        correctness_key=reported.correctness_key,
        metric_key=metric,
        status=status,
        primary_metric="latency" if primary else "none",
        primary_statistic="median" if primary else None,
        primary_value=primary.median_ns if primary else None,
        primary_unit="ns" if primary else None,
        sample_count=primary.samples if primary else None,
        uncertainty_low_ns=primary.low_ns if primary else None,
        uncertainty_high_ns=primary.high_ns if primary else None,
        evidence_level=level,
        has_raw_evidence=True,
        source_native=False,
        source=RERUN_SOURCE,
        external_id=f"rerun/{session.revision[:12]}/{outcome.item_id}",
        observed_at=session.finished_at.replace(tzinfo=None),
        definition_name=reported.definition_name,
        solution_name=reported.solution_name,
        author_directory=reported.author_directory,
        workload_uuid=reported.workload_uuid,
        input_fingerprint=reported.input_fingerprint,
        reference_digest=reported.reference_digest,
        latency_ms=primary.median_ns / 1e6 if primary else None,
        reference_latency_ms=reference_ns / 1e6 if reference_ns else None,
        speedup_factor=outcome.speedup if primary else None,
        max_absolute_error=_finite(found.max_absolute_error) if found else None,
        max_relative_error=_finite(found.max_relative_error) if found else None,
        correctness_extra_json=json.dumps({"matched_ratio": found.matched_ratio})
        if found
        else None,
        raw_timestamp=session.finished_at.isoformat(),
        raw_status=outcome.status.value,
        raw_hardware=session.environment.reported_hardware,
        not_measured=False,
        **manifest_columns(manifest),
    )


def measurement_rows(outcome: ItemOutcome) -> list[Row]:
    """Columns of `measurements` but for run and place; none of an item that did not pass."""
    primary = primary_time(outcome)
    if primary is None:
        return []
    own: Row = {
        "metric": "latency",
        "statistic": "median",
        "unit": "ns",
        "value": float(primary.median_ns),
        "sample_count": primary.samples,
    }
    return [own, *_beside(outcome)]


def _beside(outcome: ItemOutcome) -> list[Row]:
    """Named values beside the primary one."""
    rows: list[Row] = []
    for metric, statistics in (
        # What the process says of itself; under v1 that is the primary value.
        ("event_latency", outcome.statistics if outcome.outside else None),
        ("wall_latency", outcome.wall_statistics),
        ("reference_latency", outcome.reference_statistics),
    ):
        if statistics is not None:
            rows.append(
                {
                    "metric": metric,
                    "statistic": "median",
                    "unit": "ns",
                    "value": float(statistics.median),
                    "sample_count": statistics.samples,
                }
            )
    if outcome.speedup is not None:
        rows.append(
            {
                "metric": "speedup",
                "statistic": "ratio_of_medians",
                "unit": "ratio",
                "value": outcome.speedup,
                "sample_count": None,
            }
        )
    return rows


def _latencies(outcome: ItemOutcome, primary: PrimaryTime) -> LatencyStatistics:
    own = outcome.statistics if outcome.outside is None else None
    return LatencyStatistics(
        median=primary.median_ns,
        mean=own.mean if own else None,
        p05=own.p05 if own else None,
        p95=own.p95 if own else None,
        minimum=own.minimum if own else None,
        maximum=own.maximum if own else None,
        mad=own.mad if own else None,
        confidence95=(primary.low_ns, primary.high_ns),
    )


def reference_time(outcome: ItemOutcome) -> int | None:
    """The reference's time beside the solution, in ns by the same clock; None without one."""
    if outcome.outside is None:
        own = outcome.reference_statistics
        return own.median if own else None
    if outcome.reference_outside is None:
        return None
    return max(1, round(assess(outcome.reference_outside.raw()).value_ns))


def samples_csv(samples: Iterable[Sample]) -> str:
    """Every call of an item in the order of the bundle; times in ns."""
    head = "subject,mode,round,index,seed,device_ns,wall_ns\n"
    return head + "".join(
        f"{s.subject},{s.mode},{s.round},{s.index},{s.seed},{s.device_ns},"
        f"{'' if s.wall_ns is None else s.wall_ns}\n"
        for s in samples
    )


def _reference(digest: str | None) -> ArtifactReference | None:
    if digest is None:
        return None
    return ArtifactReference(uri=f"kernelindex:artifact/{digest}", digest=digest)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
