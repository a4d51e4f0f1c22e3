"""Trace and workload files become rows: the part of normalization that is done in parallel.

One `TraceReader` holds the catalog and the cases, environments and resolutions it has met; it
reads file after file. Which files to read, and what becomes of the rows, is decided elsewhere.
"""

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from assets.manifests.canonical import sha256_digest
from assets.manifests.catalog import Catalog, quarantined, too_many_faults
from assets.manifests.environments import Environment, environment_of
from assets.manifests.implementations import Implementation
from assets.manifests.operations import Operation
from assets.manifests.quarantine import (
    MOST_FAULTS_A_FILE,
    MOST_MESSAGE_CHARACTERS,
    QuarantinedItem,
    Reason,
    RejectionError,
)
from assets.manifests.rows import PARSER_VERSION
from assets.manifests.runs import Log, log_of, run_of
from assets.manifests.trace_parsing import ParsedTrace, Remembered, TraceParser
from assets.manifests.trace_rows import RunRow, TraceRows
from assets.manifests.workloads import Case, case_of
from assets.traces.documents import Trace, TraceEnvironment
from assets.traces.layout import kind_of
from assets.traces.lines import RawDocument, excerpt
from assets.traces.snapshot import DatasetFile


@dataclass(frozen=True, order=True)
class References:
    """The names that a file refers to: what its rows depend on besides its own bytes."""

    definitions: tuple[str, ...] = ()
    solutions: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> str:
        """As it is kept with the file."""
        return json.dumps([self.definitions, self.solutions])

    @classmethod
    def from_json(cls, text: str) -> "References":
        """What `to_json` wrote."""
        definitions, solutions = json.loads(text)
        return cls(tuple(definitions), tuple((name, of) for name, of in solutions))

    def inputs_digest(self, catalog: Catalog, path: str) -> str:
        """Digest of what the names stand for now at a path; unchanged means unchanged rows."""
        stand_for = [
            [_state_of_definition(catalog, name, path) for name in self.definitions],
            [
                _state_of_solution(catalog, name, definition, path)
                for name, definition in self.solutions
            ],
            PARSER_VERSION,
        ]
        return sha256_digest(json.dumps(stand_for))


def _state_of_definition(catalog: Catalog, name: str, path: str) -> list[str]:
    try:
        operation = catalog.operation(name, catalog.world(path))
    except RejectionError as error:
        return [str(error.reason)]
    return [operation.digest, operation.reference_digest]


def _state_of_solution(catalog: Catalog, name: str, definition: str, path: str) -> str:
    try:
        return catalog.implementation(name, definition, path).digest
    except RejectionError as error:
        return str(error.reason)


@dataclass
class FileOutcome:
    """What was found in one file."""

    path: str
    documents: int = 0
    workload_rows: int = 0
    runs: int = 0
    quarantined: list[QuarantinedItem] = field(default_factory=list)
    warnings: list[QuarantinedItem] = field(default_factory=list)
    references: References = field(default_factory=References)
    newest_trace_at: datetime | None = None


@dataclass
class _FileReading:
    """One file while it is read: where its rows go, and what was found."""

    file: DatasetFile
    batch: TraceRows
    outcome: FileOutcome
    root: str
    definitions: set[str] = field(default_factory=set)
    solutions: set[tuple[str, str]] = field(default_factory=set)
    implementations: dict[tuple[str, str], Implementation] = field(default_factory=dict)
    """Of the solutions that were found, by solution and definition."""
    unread: dict[str, RawDocument] = field(default_factory=dict)
    """Fields that no model knows, each with the first document that has it."""

    def __post_init__(self) -> None:
        self.path = self.file.path
        self.kind = "workload" if kind_of(self.path) == "workload" else "trace"


class TraceReader:
    """Reads trace and workload files against one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._parser = TraceParser()
        self._cases = Remembered[tuple[str, str, Hashable], Case]()
        self._environments = Remembered[Hashable, Environment]()
        self._latest_log: tuple[str | None, Log] = None, log_of(None)

    def read(self, file: DatasetFile, data: bytes, batch: TraceRows) -> FileOutcome:
        """Add the rows of one file to a batch."""
        reading = _FileReading(file, batch, FileOutcome(file.path), self._catalog.world(file.path))
        outcome = reading.outcome
        for item, trace in self._parser.parse_all(data):
            outcome.documents += 1
            if len(outcome.quarantined) >= MOST_FAULTS_A_FILE:
                outcome.quarantined.append(
                    too_many_faults(
                        kind=reading.kind, path=file.path, line=item.line, data=item.data
                    )
                )
                break
            try:
                if isinstance(trace, RejectionError):
                    raise trace
                self._add(trace, item, reading)
                if isinstance(trace.trace, Trace):  # an outline has no unknown fields
                    for name in trace.trace.unread():
                        reading.unread.setdefault(name, item)
            except RejectionError as error:
                outcome.quarantined.append(
                    quarantined(
                        error, kind=reading.kind, path=file.path, line=item.line, data=item.data
                    )
                )
        outcome.warnings += _unknown_fields(reading)
        outcome.references = References(
            tuple(sorted(reading.definitions)), tuple(sorted(reading.solutions))
        )
        return outcome

    def _add(self, parsed: ParsedTrace, item: RawDocument, reading: _FileReading) -> None:
        trace, evaluation, reported = parsed.trace, parsed.evaluation, parsed.environment
        definition, solution = trace.definition, trace.solution
        names = solution or "", definition
        implementation = reading.implementations.get(names)
        if implementation is None:
            reading.definitions.add(definition)
            if solution:
                reading.solutions.add(names)
        _reject_nul(parsed)
        operation = self._catalog.operation(definition, reading.root)
        if evaluation is None or reported is None:
            if solution and reading.kind != "workload":
                raise RejectionError(
                    Reason.NO_EVALUATION,
                    f"solution {solution!r} has no evaluation",
                    "$.evaluation",
                )
            case = self._case(parsed, operation, len(item.data))
            reading.batch.add_case(case, reading.path, item.line)
            reading.outcome.workload_rows += 1
            return
        if not solution:
            raise RejectionError(
                Reason.NO_SOLUTION, "an evaluation without a solution", "$.solution"
            )
        if implementation is None:
            implementation = self._catalog.implementation(solution, definition, reading.path)
            reading.implementations[names] = implementation
        case = self._case(parsed, operation, len(item.data))
        # A case is good whatever becomes of the measurement.
        reading.batch.add_case(case, reading.path, item.line)
        environment = self._environment(parsed.environment_key, reported, len(item.data))
        run = run_of(
            trace,
            evaluation,
            operation=operation,
            implementation=implementation,
            case=case,
            environment=environment,
            log=self._log(evaluation.log),
        )
        reading.batch.add_run(RunRow(reading.path, item.line, run))
        outcome = reading.outcome
        outcome.runs += 1
        if outcome.newest_trace_at is None or run.observed_at > outcome.newest_trace_at:
            outcome.newest_trace_at = run.observed_at

    def _case(self, parsed: ParsedTrace, operation: Operation, size_bytes: int) -> Case:
        key = operation.digest, operation.name, parsed.workload_key
        case = self._cases.get(key)
        if case is None:
            case = case_of(parsed.workload, operation)
            self._cases.remember(key, case, size_bytes)
        return case

    def _environment(
        self, key: Hashable, reported: TraceEnvironment, size_bytes: int
    ) -> Environment:
        environment = self._environments.get(key)
        if environment is None:
            environment = environment_of(reported)
            self._environments.remember(key, environment, size_bytes)
        return environment

    def _log(self, text: str | None) -> Log:
        # One failure after the other has the same log; to compare costs far less than a digest.
        latest, log = self._latest_log
        if text != latest:
            log = log_of(text)
            self._latest_log = text, log
        return log


def _unknown_fields(reading: _FileReading) -> Iterator[QuarantinedItem]:
    """One warning for a file, since what one of its traces has, all have."""
    for first, item in reading.unread.items():
        message = f"not read: {', '.join(reading.unread)}"
        if len(message) > MOST_MESSAGE_CHARACTERS:
            message = f"{message[:MOST_MESSAGE_CHARACTERS]}…"
        yield QuarantinedItem(
            Reason.UNKNOWN_FIELD,
            reading.kind,
            reading.path,
            item.line,
            f"$.{first}",
            message,
            excerpt(item.data),
        )
        return


def _reject_nul(parsed: ParsedTrace) -> None:
    uuid, evaluation = parsed.workload.uuid, parsed.evaluation
    if uuid and "\x00" in uuid:
        raise _nul("workload.uuid")
    if evaluation is not None and evaluation.log and "\x00" in evaluation.log:
        raise _nul("evaluation.log")


def _nul(field_name: str) -> RejectionError:
    return RejectionError(
        Reason.NUL_CHARACTER, f"{field_name} holds a NUL character", f"$.{field_name}"
    )


def inputs_digests(catalog: Catalog, outcomes: Iterable[FileOutcome]) -> dict[str, str]:
    """The inputs digest of each file that was read."""
    return {
        outcome.path: outcome.references.inputs_digest(catalog, outcome.path)
        for outcome in outcomes
    }
