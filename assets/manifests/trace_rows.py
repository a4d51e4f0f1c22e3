"""Rows that traces become, gathered as columns: runs, their measurements, their logs.

There are up to 10**7 of them, and one dict a row, as the other tables have, would cost more than
reading the traces. What the columns mean is said in `records` and `sql/tables/`.
"""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from msgspec import Struct

from assets.manifests import names
from assets.manifests.rows import Columns, RowBatch, add_case, add_environment
from assets.manifests.runs import Run, trace_protocol
from assets.manifests.trust import evidence_level
from assets.manifests.workloads import Case

# Runs, and bytes of their logs and free fields, that are kept as objects before they become
# columns: few, so that their memory is used again.
_MOST_OBJECTS = 2000
_MOST_TEXT_BYTES = 4 * 1024 * 1024
_MOST_CASES = 4000
# Columns of one part. A single file may bring more, and its rows then go to several parts.
_MOST_PART_BYTES = 48 * 1024 * 1024
_NOT_MEASURED_LOG = b"Solution skipped after"

# Short logs (an error, a solution that was skipped) are the same in many files, long ones hardly
# ever. Publishing copies the new rows of a part that has others too, so these are in parts of
# their own.
_SHORT_LOG_BYTES = 1024
_SHORT = "-short"

# By whether the source is available and whether there is a log. What could not be identified is
# in quarantine.
_EVIDENCE_LEVELS = {
    (source_available, has_log): evidence_level(
        source_available=source_available, has_raw_evidence=has_log, identity_complete=True
    )
    for source_available in (False, True)
    for has_log in (False, True)
}


class RunRow(Struct, frozen=True, gc=False):
    """A run and where its trace is."""

    path: str
    line: int
    run: Run


class TraceRows(RowBatch):
    """The rows of some trace and workload files, written to one part or, where many, to several."""

    def __init__(self, dataset: str, revision: str, staging: Path, part: str) -> None:
        super().__init__(dataset, revision)
        self._staging, self._part = staging, part
        self._parts_written = 0
        self._start_part()

    def _start_part(self) -> None:
        self._runs: list[RunRow] = []
        self._logs: list[RunRow] = []
        self._text_bytes = 0
        # By table and ending of the part's name.
        self._settled: dict[tuple[str, str], list[pa.Table]] = {}
        # What several traces share is written once a batch.
        self._cases: set[tuple[str, str, str, str]] = set()
        self._environment_digests: set[str] = set()
        self._log_digests: set[str | None] = {None}
        self._part_bytes = 0

    def finish(self) -> None:
        """Write what is not written yet."""
        self.write(self._staging, self._part)

    def add_case(self, case: Case, path: str, line: int) -> None:
        """A workload, unless the part has it."""
        key = (case.digest, case.definition, case.external_id, case.input_fingerprint)
        if key not in self._cases:
            self._cases.add(key)
            add_case(self, case, path, line)
            if len(self._cases) >= _MOST_CASES:
                self._end_part()

    def add_run(self, row: RunRow) -> None:
        """A trace, with its measurement, its log and its environment."""
        environment, log_digest = row.run.environment, row.run.log.digest
        if environment.digest not in self._environment_digests:
            self._environment_digests.add(environment.digest)
            add_environment(self, environment, row.path, row.line)
        if log_digest not in self._log_digests:
            self._log_digests.add(log_digest)
            self._logs.append(row)
        if not self._runs or self._runs[-1].run.log is not row.run.log:
            self._text_bytes += len(row.run.log.content)
        self._text_bytes += len(row.run.correctness_extra_json or "")
        self._text_bytes += len(row.run.evaluation_extra_json or "")
        self._runs.append(row)
        if len(self._runs) >= _MOST_OBJECTS or self._text_bytes >= _MOST_TEXT_BYTES:
            self._settle()
            if self._part_bytes >= _MOST_PART_BYTES:
                self._end_part()

    def _end_part(self) -> None:
        self._parts_written += 1
        self.write(self._staging, f"{self._part}-{self._parts_written}")
        self.clear()
        self._start_part()

    def tables(self) -> Iterator[tuple[str, str, pa.Table]]:
        """Name, ending of the part's name, and rows of every table that has some."""
        yield from super().tables()
        self._settle()
        for (name, ending), tables in self._settled.items():
            yield name, ending, pa.concat_tables(tables)

    def _settle(self) -> None:
        """Make columns of the runs so far and forget them."""
        runs = self._runs
        measured = [row for row in runs if row.run.mean_ns is not None]
        short: list[RunRow] = []
        long: list[RunRow] = []
        for row in self._logs:
            (short if len(row.run.log.content) <= _SHORT_LOG_BYTES else long).append(row)
        for name, ending, rows, columns_of in (
            ("runs", "", runs, _run_columns),
            ("measurements", "", measured, _measurement_columns),
            ("artifacts", "", long, _log_columns),
            ("artifacts", _SHORT, short, _log_columns),
        ):
            if rows:
                table = self.arrow_table(name, len(rows), columns_of(rows))
                self._settled.setdefault((name, ending), []).append(table)
                self._part_bytes += table.nbytes
        runs.clear()
        self._logs.clear()
        self._text_bytes = 0


def _run_columns(rows: list[RunRow]) -> Columns:
    runs = [row.run for row in rows]
    operations = [run.operation for run in runs]
    implementations = [run.implementation for run in runs]
    cases = [run.case for run in runs]
    environments = [run.environment for run in runs]
    is_measured = [run.mean_ns is not None for run in runs]
    has_log = [run.log.digest is not None for run in runs]
    return {
        "path": [row.path for row in rows],
        "line": [row.line for row in rows],
        "run_digest": [run.digest for run in runs],
        "operation_digest": [operation.digest for operation in operations],
        "workload_digest": [case.digest for case in cases],
        "implementation_digest": [implementation.digest for implementation in implementations],
        "protocol_digest": trace_protocol().digest,
        "environment_digest": [environment.digest for environment in environments],
        "comparison_key": [run.comparison_key for run in runs],
        "correctness_key": [case.correctness_key for case in cases],
        "metric_key": [run.metric_key for run in runs],
        "status": [run.status for run in runs],
        "primary_metric": ["latency" if measured else "none" for measured in is_measured],
        "primary_statistic": ["mean" if measured else None for measured in is_measured],
        "primary_value": [run.mean_ns for run in runs],
        "primary_unit": ["ns" if measured else None for measured in is_measured],
        "evidence_level": [
            _EVIDENCE_LEVELS[implementation.source_available, logged]
            for implementation, logged in zip(implementations, has_log, strict=True)
        ],
        "has_raw_evidence": has_log,
        "source_native": True,
        "source": names.SOURCE,
        "external_id": [run.external_id for run in runs],
        "observed_at": [run.observed_at for run in runs],
        "definition_name": [operation.name for operation in operations],
        "solution_name": [implementation.name for implementation in implementations],
        "author_directory": [item.author_directory for item in implementations],
        "workload_uuid": [case.uuid for case in cases],
        "input_fingerprint": [case.input_fingerprint for case in cases],
        "reference_digest": [operation.reference_digest for operation in operations],
        "latency_ms": [run.times.latency_ms for run in runs],
        "reference_latency_ms": [run.times.reference_latency_ms for run in runs],
        "speedup_factor": [run.times.speedup_factor for run in runs],
        "max_absolute_error": [run.errors.absolute for run in runs],
        "max_relative_error": [run.errors.relative for run in runs],
        "correctness_extra_json": [run.correctness_extra_json for run in runs],
        "evaluation_extra_json": [run.evaluation_extra_json for run in runs],
        "raw_timestamp": [run.raw_timestamp for run in runs],
        "raw_status": [run.raw_status for run in runs],
        "raw_hardware": [environment.reported_hardware for environment in environments],
        "log_digest": [run.log.digest for run in runs],
        "log_size_bytes": [len(run.log.content) or None for run in runs],
        "not_measured": [run.log.content.startswith(_NOT_MEASURED_LOG) for run in runs],
        "canonical_json": [run.identity_json for run in runs],
        "metadata_json": [run.metadata_json for run in runs],
    }


def _measurement_columns(rows: list[RunRow]) -> Columns:
    return {
        "path": [row.path for row in rows],
        "line": [row.line for row in rows],
        "run_digest": [row.run.digest for row in rows],
        "metric": "latency",
        "statistic": "mean",
        "unit": "ns",
        "value": [row.run.mean_ns for row in rows],
    }


def _texts(values: list[bytes]) -> pa.Array:
    """UTF-8 as texts: put together without being read, as logs are most of what there is."""
    offsets = pa.array([0, *accumulate(map(len, values))], pa.int32())
    return pa.StringArray.from_buffers(
        len(values), offsets.buffers()[1], pa.py_buffer(b"".join(values))
    )


def _log_columns(rows: list[RunRow]) -> Columns:
    return {
        "path": [row.path for row in rows],
        "line": [row.line for row in rows],
        "artifact_digest": [row.run.log.digest for row in rows],
        "kind": "log",
        "media_type": "text/plain",
        "size_bytes": [len(row.run.log.content) for row in rows],
        "content": _texts([row.run.log.content for row in rows]),
    }
