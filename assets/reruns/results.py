"""A result bundle becomes rows: validated, tied to the published runs, staged and published.

Identity is never taken from the result alone: the documents in the job bundle must be those of
the run that is said to be reproduced. Publishing the same result again publishes nothing.
"""

import json
import math
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from assets.manifests import names
from assets.manifests.canonical import sha256_digest
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
from assets.manifests.operations import operation_of
from assets.manifests.quarantine import RejectionError
from assets.manifests.rows import (
    PARSER_VERSION,
    Row,
    RowBatch,
    add_environment,
    add_protocol,
    manifest_columns,
)
from assets.manifests.runs import NO_METRIC_KEY, Environment, comparison_key, metric_key
from assets.manifests.trust import evidence_level
from assets.manifests.workloads import case_of, input_fingerprint
from assets.reruns.bundles import BundleError, ResultBundle, read_bundle, read_result
from assets.reruns.controlled_protocol import (
    COMPARATOR,
    environment_of_result,
    is_approved,
    protocol_manifest,
)
from assets.reruns.errors import ResultRefusedError
from assets.reruns.result_documents import ItemOutcome, Sample
from assets.reruns.selection import RERUN_SOURCE
from assets.reruns.verdicts import Comparison, Timed, Unverified, compare, unverified_because
from assets.reruns.worker.codes import SCORED_STATUSES, State
from assets.reruns.worker.job import Item, JobBundle
from assets.tables.contracts import STAGED
from assets.tables.publication import PublicationRequest, publish
from assets.tables.reader import open_database
from assets.tables.warehouse import Publication, Warehouse
from assets.traces.documents import Definition, Workload

PUBLICATION_KIND = "rerun"
_METRIC = metric_key("latency", "median", "ns")
_SERIES = {
    ("candidate", "device"): "device",
    ("candidate", "wall"): "wall",
    ("reference", "device"): "reference_device",
    ("reference", "wall"): "reference_wall",
}
_STATUS: TypeAdapter[RunStatus] = TypeAdapter(RunStatus)
_COMPARED = ("passed", "incorrect_numerical")


@dataclass(frozen=True)
class ImportedRun:
    """One controlled run with its verdict."""

    item_id: str
    run_digest: str
    solution: str
    definition: str
    status: str
    median_ns: int | None
    evidence_level: str
    unverified_because: tuple[str, ...]
    comparison: Comparison
    reported_ns: int | None
    latencies_ns: tuple[int, ...]


@dataclass(frozen=True)
class Imported:
    """What came of one result bundle; `publication` is None where everything was known.

    `unscored` are items without a score (cancelled, infrastructure), with why; `fault` is what
    broke the session, None where it came to its end.
    """

    publication: Publication | None
    runs: tuple[ImportedRun, ...]
    unscored: tuple[str, ...]
    clean: bool
    fault: str | None

    @property
    def has_score(self) -> bool:
        """Whether anything was measured that can be published, now or before."""
        return bool(self.runs)


@dataclass(frozen=True)
class _Reported:
    """The published run that an item reproduces."""

    run_digest: str
    operation_digest: str
    workload_digest: str
    implementation_digest: str
    correctness_key: str
    definition_name: str
    solution_name: str
    author_directory: str
    workload_uuid: str | None
    input_fingerprint: str
    reference_digest: str | None
    status: str
    primary_value: int | None
    gpu_product: str
    source_available: bool


def import_result(
    warehouse: Warehouse, bundle_folder: Path, result_folder: Path, runner: str | None = None
) -> Imported:
    """Validate a result bundle against its job bundle and publish it.

    `runner` names who measured; runs are replicated only across different names. The database is
    not rebuilt here.

    Raises:
        ResultRefusedError: the bundles are damaged, do not belong together, or name runs or
            documents that are not published here; nothing was published.
        WarehouseError: the warehouse cannot be read or written.
    """
    try:
        bundle = read_bundle(bundle_folder)
        result = read_result(result_folder, bundle)
    except BundleError as error:
        raise ResultRefusedError(str(error)) from error
    with open_database(warehouse.root) as connection:
        staged = _Staged(bundle, result, connection, runner)
        staged.add_all()
    name = f"rerun-{staged.session_id[7:23]}"
    staging = warehouse.staging(name)
    try:
        staged.write(staging)
        record = publish(
            warehouse,
            staging,
            PublicationRequest(
                kind=PUBLICATION_KIND, dataset=RERUN_SOURCE, revision=staged.revision
            ),
        )
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    fault = result.result.error
    return Imported(
        publication=record,
        runs=tuple(staged.imported),
        unscored=tuple(staged.unscored),
        clean=result.result.calibration.clean,
        # Of a traceback, the line that says what it was.
        fault=fault.strip().splitlines()[-1] if fault and fault.strip() else None,
    )


def session_id_of(result_folder: Path) -> str:
    """What names a session: the digest of its `result.json`."""
    return sha256_digest((result_folder / "result.json").read_bytes())


class _Staged:
    """The rows of one result bundle."""

    def __init__(
        self,
        bundle: JobBundle,
        result: ResultBundle,
        connection: duckdb.DuckDBPyConnection,
        runner: str | None,
    ) -> None:
        self._bundle = bundle
        self._result = result
        self._document = result.result
        self._connection = connection
        self._runner = runner
        self.session_id = session_id_of(result.root)
        self.revision = self.session_id[7:47]
        self._batch = RowBatch(RERUN_SOURCE, self.revision)
        self._samples: list[Row] = []
        self._reproductions: list[Row] = []
        self.imported: list[ImportedRun] = []
        self.unscored: list[str] = []
        self._on_gpu = self._document.device.get("kind") == "cuda"
        self._protocol = protocol_manifest(self._document.protocol, self._on_gpu)
        self._observed_at = self._document.finished_at
        self._samples_of: dict[str, list[Sample]] = {}
        for sample in result.samples:
            self._samples_of.setdefault(sample.item_id, []).append(sample)
        self._operation = lru_cache(maxsize=None)(self._read_operation)

    @cached_property
    def _environment(self) -> Environment:
        # Only once something was scored: a session that broke early could not look at the machine.
        return _environment(self._result)

    def add_all(self) -> None:
        """Rows of every item that has a score."""
        items = {item.item_id: item for item in self._bundle.items}
        for line, outcome in enumerate(self._document.items, start=1):
            reported = self._reported(items[outcome.item_id])
            if outcome.status not in SCORED_STATUSES:
                codes = ", ".join(reason.code for reason in outcome.reasons)
                self.unscored.append(f"{reported.solution_name}: {outcome.status.value} ({codes})")
                continue
            self._add(outcome, reported, line)
        if self._batch.rows["runs"]:
            add_protocol(self._batch, self._protocol)
            add_environment(self._batch, self._environment, "environment.json", 1)

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

    def _add(self, outcome: ItemOutcome, reported: _Reported, line: int) -> None:
        status = names.STATUSES[outcome.status.value]
        log = self._result.log_of(outcome)
        log_digest = self._artifact(log, "log", "text/plain", line) if log else None
        samples = self._samples_of.get(outcome.item_id, [])
        raw = _samples_csv(samples)
        raw_digest = self._artifact(raw, "raw_samples", "text/csv", line) if samples else None
        manifest = self._manifest(outcome, reported, status, log_digest, raw_digest)
        passed = status == "passed" and outcome.statistics is not None
        unverified = self._unverified(outcome, status)
        # What was published stays as it was, whoever hands the same result in again.
        level = self._published_level(manifest.digest) or evidence_level(
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
        self._add_run(outcome, reported, manifest, status, level, log, log_digest, line)
        self._add_measurements(outcome, manifest.digest, passed, line)
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
                evidence_level=level,
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

    def _runners(self, reported: _Reported) -> int:
        """How many named runners verified this implementation on this workload, this one too."""
        rows = self._connection.execute(
            "select distinct reproductions.runner from reproductions "
            "inner join runs using (run_digest) "
            "where runs.eligible and runs.implementation_digest = $implementation "
            "and runs.workload_digest = $workload "
            "and runs.evidence_level in ('verified', 'replicated') "
            "and reproductions.runner is not null",
            {
                "implementation": reported.implementation_digest,
                "workload": reported.workload_digest,
            },
        ).fetchall()
        known = {str(runner) for (runner,) in rows}
        return len(known | {self._runner}) if self._runner else 0

    def _published_level(self, run_digest: str) -> str | None:
        rows = self._connection.execute(
            "select evidence_level from runs where run_digest = $run", {"run": run_digest}
        ).fetchall()
        return str(rows[0][0]) if rows else None

    def _timed(self, outcome: ItemOutcome, status: str) -> Timed:
        statistics = outcome.statistics if status == "passed" else None
        low, high = statistics.confidence95 if statistics else (None, None)
        return Timed(
            status,
            self._environment.actual.product,
            statistics.median if statistics else None,
            low,
            high,
        )

    def _manifest(
        self,
        outcome: ItemOutcome,
        reported: _Reported,
        status: str,
        log_digest: str | None,
        raw_digest: str | None,
    ) -> Manifest:
        raw = _reference(raw_digest)
        statistics = outcome.statistics if status == "passed" else None
        found = outcome.correctness if status in _COMPARED else None
        spec = BenchmarkRun(
            implementation_digest=reported.implementation_digest,
            workload_digest=reported.workload_digest,
            protocol_digest=self._protocol.digest,
            environment_digest=self._environment.digest,
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
                for row in _measurements(outcome)
            ]
            if statistics
            else None,
            evidence=Evidence(logs=_reference(log_digest), raw_samples=raw),
            observed_at=instant_text(self._observed_at),
        )
        title = f"{reported.solution_name} · {reported.definition_name} (controlled)"
        name = names.kebab(f"controlled-{reported.definition_name}-{outcome.item_id}")
        return Manifest.of(spec, Metadata(name=name, title=title[:200]))

    def _add_run(
        self,
        outcome: ItemOutcome,
        reported: _Reported,
        manifest: Manifest,
        status: str,
        level: str,
        log: str,
        log_digest: str | None,
        line: int,
    ) -> None:
        statistics = outcome.statistics if status == "passed" else None
        reference = outcome.reference_statistics if statistics else None
        found = outcome.correctness if status in _COMPARED else None
        metric = _METRIC if statistics else NO_METRIC_KEY
        self._batch.add(
            "runs",
            "result.json",
            line,
            run_digest=manifest.digest,
            operation_digest=reported.operation_digest,
            workload_digest=reported.workload_digest,
            implementation_digest=reported.implementation_digest,
            protocol_digest=self._protocol.digest,
            environment_digest=self._environment.digest,
            comparison_key=comparison_key(
                operation=reported.operation_digest,
                workload=reported.workload_digest,
                protocol=self._protocol.digest,
                environment=self._environment.digest,
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
            external_id=f"rerun/{self.revision[:12]}/{outcome.item_id}",
            observed_at=_naive(self._observed_at),
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
            raw_timestamp=self._document.finished_at.isoformat(),
            raw_status=outcome.status.value,
            raw_hardware=self._environment.reported_hardware,
            log_digest=log_digest,
            log_size_bytes=len(log.encode()) or None,
            not_measured=False,
            **manifest_columns(manifest),
        )

    def _add_measurements(self, outcome: ItemOutcome, digest: str, passed: bool, line: int) -> None:
        if not passed or outcome.statistics is None:
            return
        own = {
            "metric": "latency",
            "statistic": "median",
            "unit": "ns",
            "value": float(outcome.statistics.median),
            "sample_count": outcome.statistics.samples,
        }
        for row in (own, *_measurements(outcome)):
            self._batch.add("measurements", "result.json", line, run_digest=digest, **row)

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
        reported: _Reported,
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
                "controlled_gpu": self._environment.actual.product,
                "session_id": self.session_id,
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

    def _reported(self, item: Item) -> _Reported:
        """The run that an item reproduces, once the item's documents are shown to be that run's."""
        if item.reproduces is None:
            raise ResultRefusedError(f"{item.item_id} does not say which run it reproduces")
        rows = self._connection.execute(
            "select runs.run_digest, runs.operation_digest, runs.workload_digest, "
            "runs.implementation_digest, runs.correctness_key, runs.definition_name, "
            "runs.solution_name, runs.author_directory, runs.workload_uuid, "
            "runs.input_fingerprint, runs.reference_digest, runs.status, runs.primary_value, "
            "environments.gpu_product, coalesce(implementations.source_available, false) "
            "from runs inner join environments using (environment_digest) "
            "left join implementations using (implementation_digest) where run_digest = $run",
            {"run": item.reproduces},
        ).fetchall()
        if not rows:
            raise ResultRefusedError(
                f"{item.item_id} reproduces {item.reproduces}, which is not published here; "
                "ingest its dataset first"
            )
        reported = _Reported(*rows[0])
        self._check_documents(item, reported)
        return reported

    def _check_documents(self, item: Item, reported: _Reported) -> None:
        known = self._connection.execute(
            "select 1 from solutions where implementation_digest = $implementation "
            "and document_digest = $document",
            {
                "implementation": reported.implementation_digest,
                "document": item.solution.digest,
            },
        ).fetchall()
        if not known:
            raise ResultRefusedError(
                f"{item.item_id}: its solution is not the document of {reported.solution_name} "
                "that was published"
            )
        operation = self._operation(item.definition.path)
        try:
            content = self._bundle.read_document(item.workload)
            workload = Workload.model_validate(content.get("workload") or content)
            case, fingerprint = case_of(workload, operation).digest, input_fingerprint(workload)
        except (ValidationError, RejectionError, AttributeError) as error:
            raise ResultRefusedError(f"{item.item_id}: its workload is none: {error}") from error
        found = (operation.digest, operation.reference_digest, case, fingerprint)
        expected = (
            reported.operation_digest,
            reported.reference_digest,
            reported.workload_digest,
            reported.input_fingerprint,
        )
        if found != expected:
            raise ResultRefusedError(
                f"{item.item_id}: its definition or workload is not that of "
                f"{reported.run_digest}: {found} instead of {expected}"
            )

    def _read_operation(self, path: str) -> Any:
        try:
            definition = Definition.model_validate_json((self._bundle.root / path).read_bytes())
            return operation_of(definition, path=path, definitions_url=None)
        except (ValidationError, RejectionError) as error:
            raise ResultRefusedError(f"{path}: is no definition: {error}") from error


def _environment(result: ResultBundle) -> Environment:
    try:
        return environment_of_result(result.environment)
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise ResultRefusedError(
            f"{result.root}/environment.json lacks or misuses {error}"
        ) from error


def _measurements(outcome: ItemOutcome) -> list[Row]:
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


def _samples_csv(samples: Iterable[Sample]) -> str:
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


def _naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def summary(imported: Imported) -> Mapping[str, int]:
    """How many runs have each verdict."""
    counts: dict[str, int] = {}
    for run in imported.runs:
        counts[str(run.comparison.verdict)] = counts.get(str(run.comparison.verdict), 0) + 1
    return counts
