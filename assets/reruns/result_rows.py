"""A result bundle becomes rows: each item with a score tied to its published run, and staged.

Identity is never taken from the result alone: the documents in the job bundle must be those of
the run that is said to be reproduced. What is published of the rows is decided in `results.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from assets.manifests.canonical import sha256_digest
from assets.manifests.environments import Environment
from assets.manifests.rows import PARSER_VERSION, Row, RowBatch, add_environment, add_protocol
from assets.manifests.trust import evidence_level
from assets.reruns.bundles import ResultBundle
from assets.reruns.controlled_protocol import (
    environment_of_result,
    is_approved,
    protocol_manifest,
)
from assets.reruns.controlled_runs import (
    ControlledSession,
    manifest_of,
    measurement_rows,
    run_row,
    samples_csv,
    status_of,
)
from assets.reruns.errors import ResultRefusedError
from assets.reruns.published_sessions import SessionIdentity
from assets.reruns.reported_runs import ReportedRun, ReportedRuns
from assets.reruns.result_documents import ItemOutcome, Sample
from assets.reruns.selection import RERUN_SOURCE
from assets.reruns.verdicts import (
    Comparison,
    Timed,
    Unverified,
    compare,
    trial_because,
    unverified_because,
)
from assets.reruns.worker.codes import SCORED_STATUSES, State
from assets.reruns.worker.job import JobBundle
from assets.tables.contracts import STAGED

_SERIES = {
    ("candidate", "device"): "device",
    ("candidate", "wall"): "wall",
    ("reference", "device"): "reference_device",
    ("reference", "wall"): "reference_wall",
}


@dataclass(frozen=True)
class ImportedRun:
    """One controlled run with its verdict; a trial has no level of evidence."""

    item_id: str
    run_digest: str
    solution: str
    definition: str
    status: str
    median_ns: int | None
    evidence_level: str | None
    unverified_because: tuple[str, ...]
    comparison: Comparison
    reported_ns: int | None
    latencies_ns: tuple[int, ...]


class ResultRows:
    """The rows of one result bundle."""

    def __init__(
        self,
        bundle: JobBundle,
        result: ResultBundle,
        connection: duckdb.DuckDBPyConnection,
        runner: str | None,
        identity: SessionIdentity,
    ) -> None:
        self._bundle = bundle
        self._result = result
        self._document = result.result
        self._runner = runner
        self._identity = identity
        self.revision = identity.revision
        self._batch = RowBatch(RERUN_SOURCE, self.revision)
        self._samples: list[Row] = []
        self._reproductions: list[Row] = []
        self.imported: list[ImportedRun] = []
        self.unscored: list[str] = []
        self._on_gpu = self._document.device.kind == "cuda"
        self.trial = trial_because(self._on_gpu, is_approved(self._document.protocol))
        self._samples_of: dict[str, list[Sample]] = {}
        for sample in result.samples:
            self._samples_of.setdefault(sample.item_id, []).append(sample)
        self._reported = ReportedRuns(bundle, connection)

    @cached_property
    def _session(self) -> ControlledSession:
        # Only once something was scored: a session that broke early could not look at the machine.
        return ControlledSession(
            protocol_manifest(self._document.protocol, self._on_gpu),
            _environment(self._result),
            self._identity.finished_at,
            self.revision,
        )

    def add_all(self) -> None:
        """Rows of every item that has a score."""
        items = {item.item_id: item for item in self._bundle.items}
        for line, outcome in enumerate(self._document.items, start=1):
            reported = self._reported.of(items[outcome.item_id])
            if outcome.status not in SCORED_STATUSES:
                codes = ", ".join(reason.code for reason in outcome.reasons)
                self.unscored.append(f"{reported.solution_name}: {outcome.status.value} ({codes})")
                continue
            self._add(outcome, reported, line)
        if self._batch.rows["runs"]:
            add_protocol(self._batch, self._session.protocol)
            add_environment(self._batch, self._session.environment, "environment.json", 1)

    def write(self, staging: Path) -> None:
        """Write all rows as staged parts."""
        self._batch.write(staging, "rerun")
        constant = {
            "dataset": RERUN_SOURCE,
            "revision": self.revision,
            "parser_version": PARSER_VERSION,
        }
        for table, rows in (
            ("rerun_samples", self._samples),
            ("reproductions", self._reproductions),
        ):
            if rows:
                folder = staging / table
                folder.mkdir(parents=True, exist_ok=True)
                made = pa.Table.from_pylist(
                    [{**constant, **row} for row in rows], schema=STAGED[table]
                )
                pq.write_table(made, folder / "rerun.parquet", compression="zstd")

    def _add(self, outcome: ItemOutcome, reported: ReportedRun, line: int) -> None:
        status = status_of(outcome)
        log = self._result.log_of(outcome)
        log_digest = self._artifact(log, "log", "text/plain", line) if log else None
        samples = self._samples_of.get(outcome.item_id, [])
        raw = samples_csv(samples)
        raw_digest = self._artifact(raw, "raw_samples", "text/csv", line) if samples else None
        manifest = manifest_of(outcome, reported, self._session, log_digest, raw_digest)
        passed = status == "passed" and outcome.statistics is not None
        unverified = self._unverified(outcome, status)
        # What was published stays as it was, whoever hands the same result in again.
        level = self._reported.evidence_level(manifest.digest) or evidence_level(
            source_available=reported.source_available,
            has_raw_evidence=log_digest is not None or raw_digest is not None,
            identity_complete=True,
            reproduced=not unverified,
            replications=0 if unverified else self._runners(reported),
        )
        comparison = compare(
            Timed(reported.status, reported.gpu_product, reported.primary_value),
            self._timed(outcome, status),
        )
        median_ns = outcome.statistics.median if passed and outcome.statistics else None
        self._batch.add(
            "runs",
            "result.json",
            line,
            log_digest=log_digest,
            log_size_bytes=len(log.encode()) or None,
            **run_row(outcome, reported, self._session, manifest, level),
        )
        for row in measurement_rows(outcome):
            self._batch.add("measurements", "result.json", line, run_digest=manifest.digest, **row)
        self._add_samples(manifest.digest, samples, line)
        self._add_reproduction(
            outcome, reported, manifest.digest, comparison, status, unverified, line
        )
        self.imported.append(
            ImportedRun(
                item_id=outcome.item_id,
                run_digest=manifest.digest,
                solution=reported.solution_name,
                definition=reported.definition_name,
                status=status,
                median_ns=median_ns,
                evidence_level=None if self.trial else level,
                unverified_because=tuple(unverified),
                comparison=comparison,
                reported_ns=reported.primary_value,
                latencies_ns=tuple(
                    sample.device_ns
                    for sample in samples
                    if (sample.subject, sample.mode) == ("candidate", "device")
                ),
            )
        )

    def _unverified(self, outcome: ItemOutcome, status: str) -> list[Unverified]:
        document = self._document
        return unverified_because(
            status=status,
            on_gpu=self._on_gpu,
            approved_protocol=is_approved(document.protocol),
            clean_calibration=document.calibration.clean,
            complete_session=document.state is State.COMPLETE,
            cached_build=any(note.code == "CACHED_BUILD" for note in outcome.notes),
            worker_agrees=document.may_become_verified,
        )

    def _runners(self, reported: ReportedRun) -> int:
        """How many named runners verified the implementation on its workload, this one too."""
        return len(self._reported.verifiers(reported) | {self._runner}) if self._runner else 0

    def _timed(self, outcome: ItemOutcome, status: str) -> Timed:
        statistics = outcome.statistics if status == "passed" else None
        low, high = statistics.confidence95 if statistics else (None, None)
        return Timed(
            status,
            self._session.environment.actual.product,
            statistics.median if statistics else None,
            low,
            high,
        )

    def _add_samples(self, digest: str, samples: Iterable[Sample], line: int) -> None:
        calls: dict[str, int] = {}
        for sample in samples:
            series = _SERIES[sample.subject, sample.mode]
            calls[series] = call = calls.get(series, -1) + 1
            self._samples.append(
                {
                    "run_digest": digest,
                    "series": series,
                    "call": call,
                    "round": sample.round,
                    "seed": sample.seed,
                    "device_ns": sample.device_ns,
                    "wall_ns": sample.wall_ns,
                    "path": "samples.jsonl",
                    "line": line,
                }
            )

    def _add_reproduction(
        self,
        outcome: ItemOutcome,
        reported: ReportedRun,
        digest: str,
        comparison: Comparison,
        status: str,
        unverified: list[Unverified],
        line: int,
    ) -> None:
        statistics = outcome.statistics if status == "passed" else None
        convention = outcome.call_convention
        calibration = self._document.calibration
        self._reproductions.append(
            {
                "run_digest": digest,
                "reproduces_digest": reported.run_digest,
                "verdict": str(comparison.verdict),
                "ratio": comparison.ratio,
                "ratio_low": comparison.low,
                "ratio_high": comparison.high,
                "reported_ns": reported.primary_value,
                "controlled_ns": statistics.median if statistics else None,
                "reported_status": reported.status,
                "controlled_status": status,
                "reported_gpu": reported.gpu_product,
                "controlled_gpu": self._session.environment.actual.product,
                "session_id": self._identity.session_id,
                "runner": self._runner,
                "reason_codes": [reason.code for reason in outcome.reasons],
                "note_codes": [note.code for note in outcome.notes],
                "unverified_because": [str(reason) for reason in unverified],
                "call_convention": f"{convention.style}, {convention.arguments}, "
                f"by {convention.decided_by}"
                if convention
                else None,
                "reference_ns": outcome.reference_statistics.median
                if outcome.reference_statistics
                else None,
                "roofline_floor_ns": outcome.roofline.floor_ns if outcome.roofline else None,
                "calibration_json": calibration.model_dump_json(),
                "bundle_id": self._bundle.bundle_id,
                "request_reason": self._bundle.reason,
                "path": "result.json",
                "line": line,
            }
        )

    def _artifact(self, content: str, kind: str, media_type: str, line: int) -> str:
        digest = sha256_digest(content)
        self._batch.add(
            "artifacts",
            "result.json",
            line,
            artifact_digest=digest,
            kind=kind,
            media_type=media_type,
            size_bytes=len(content.encode()),
            content=content,
        )
        return digest


def _environment(result: ResultBundle) -> Environment:
    try:
        return environment_of_result(result.environment)
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise ResultRefusedError(
            f"{result.root}/environment.json lacks or misuses {error}"
        ) from error
