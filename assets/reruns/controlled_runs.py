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

_METRIC = metric_key("latency", "median", "ns")
_STATUS: TypeAdapter[RunStatus] = TypeAdapter(RunStatus)
_COMPARED = ("passed", "incorrect_numerical")


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
    statistics = outcome.statistics if status == "passed" else None
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
            samples=statistics.samples,
            latency_ns=LatencyStatistics(
                median=statistics.median,
                mean=statistics.mean,
                p05=statistics.p05,
                p95=statistics.p95,
                minimum=statistics.minimum,
                maximum=statistics.maximum,
                mad=statistics.mad,
                confidence95=statistics.confidence95,
            ),
            raw_samples=raw,
        )
        if statistics
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
        if statistics
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
    statistics = outcome.statistics if status == "passed" else None
    reference = outcome.reference_statistics if statistics else None
    found = outcome.correctness if status in _COMPARED else None
    metric = _METRIC if statistics else NO_METRIC_KEY
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
        primary_metric="latency" if statistics else "none",
        primary_statistic="median" if statistics else None,
        primary_value=statistics.median if statistics else None,
        primary_unit="ns" if statistics else None,
        sample_count=statistics.samples if statistics else None,
        uncertainty_low_ns=statistics.confidence95[0] if statistics else None,
        uncertainty_high_ns=statistics.confidence95[1] if statistics else None,
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
        latency_ms=statistics.median / 1e6 if statistics else None,
        reference_latency_ms=reference.median / 1e6 if reference else None,
        speedup_factor=outcome.speedup if statistics else None,
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
    statistics = outcome.statistics
    if statistics is None or status_of(outcome) != "passed":
        return []
    own: Row = {
        "metric": "latency",
        "statistic": "median",
        "unit": "ns",
        "value": float(statistics.median),
        "sample_count": statistics.samples,
    }
    return [own, *_beside(outcome)]


def _beside(outcome: ItemOutcome) -> list[Row]:
    """Named values beside the primary one."""
    rows: list[Row] = []
    for metric, statistics in (
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
