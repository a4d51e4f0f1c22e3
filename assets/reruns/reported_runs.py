"""The published runs that a session measured again: looked up, and shown to be what it measured.

Identity is never taken from a result alone: the documents in the job bundle must be those of the
run that is said to be reproduced.
"""

from dataclasses import dataclass
from functools import lru_cache

import duckdb
from pydantic import ValidationError

from assets.manifests.operations import Operation, operation_of
from assets.manifests.quarantine import RejectionError
from assets.manifests.workloads import case_of, input_fingerprint
from assets.reruns.errors import ResultRefusedError
from assets.reruns.worker.job import Item, JobBundle
from assets.traces.documents import Definition, Workload


@dataclass(frozen=True)
class ReportedRun:
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


class ReportedRuns:
    """What the database says about the runs that the items of a job bundle reproduce."""

    def __init__(self, bundle: JobBundle, connection: duckdb.DuckDBPyConnection) -> None:
        self._bundle = bundle
        self._connection = connection
        self._operation = lru_cache(maxsize=None)(self._read_operation)

    def of(self, item: Item) -> ReportedRun:
        """The run that an item reproduces, once the item's documents are shown to be that run's.

        Raises:
            ResultRefusedError: the run, or one of the documents, is not published here.
        """
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
        reported = ReportedRun(*rows[0])
        self._check_documents(item, reported)
        return reported

    def verifiers(self, reported: ReportedRun) -> set[str]:
        """The named runners that verified its implementation on its workload."""
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
        return {str(runner) for (runner,) in rows}

    def evidence_level(self, run_digest: str) -> str | None:
        """The evidence level of a run; None where it is not published yet."""
        rows = self._connection.execute(
            "select evidence_level from runs where run_digest = $run", {"run": run_digest}
        ).fetchall()
        return str(rows[0][0]) if rows else None

    def _check_documents(self, item: Item, reported: ReportedRun) -> None:
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

    def _read_operation(self, path: str) -> Operation:
        try:
            definition = Definition.model_validate_json((self._bundle.root / path).read_bytes())
            return operation_of(definition, path=path, definitions_url=None)
        except (ValidationError, RejectionError) as error:
            raise ResultRefusedError(f"{path}: is no definition: {error}") from error
