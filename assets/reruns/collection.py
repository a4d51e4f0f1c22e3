"""Collect what a chosen run needs to be measured again, and put it into a job bundle.

Documents come out of the raw store, byte for byte as they were published; tensor files out of the
dataset's own folder, a folder that was named, or the raw store. Nothing here runs a solution.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb

from assets.manifests.canonical import sha256_digest
from assets.reruns.errors import Refusal, RerunRefusedError
from assets.reruns.job_bundles import BundleError, BundleItem, write_bundle
from assets.reruns.requests import MAX_ITEMS, RerunRequest, RunsSelection
from assets.reruns.selection import ChosenRun, choose
from assets.reruns.worker.documents import DocumentError, problem_of, reference_source, solution_of
from assets.reruns.worker.job import JobBundle, Limits, Protocol
from assets.reruns.worker.run import SUPPORTED_LANGUAGES
from assets.tables.reader import open_database
from assets.tables.warehouse import Warehouse
from assets.traces.errors import RawStoreError
from assets.traces.layout import path_fault, root_of
from assets.traces.lines import RawDocument, read_documents
from assets.traces.pull import SAMPLE, SAMPLE_DIRECTORY

_POINTER = b"version https://git-lfs"
_REFUSAL_OF_CODE = {
    "UNSUPPORTED_LANGUAGE": Refusal.UNSUPPORTED_LANGUAGE,
    "UNSUPPORTED_BINDING": Refusal.UNSUPPORTED_LANGUAGE,
    "MISSING_TENSOR": Refusal.MISSING_TENSORS,
    "ENTRY_POINT_MISSING": Refusal.NO_SOURCE,
    "UNSAFE_SOURCE_PATH": Refusal.NO_SOURCE,
}


@dataclass(frozen=True)
class Prepared:
    """A job bundle that was written, and the runs of the selection that are not in it, with why."""

    bundle: JobBundle
    chosen: tuple[ChosenRun, ...]
    left_out: tuple[str, ...]


def prepare_bundle(
    warehouse: Warehouse,
    request: RerunRequest,
    folder: Path,
    tensor_folders: Sequence[Path] = (),
) -> Prepared:
    """Resolve a request and write its job bundle to `folder`, which must not exist.

    Runs that were named one by one must all be measurable. Of a group or leaderboard, those that
    are not are left out and said so, as long as any is left.

    Raises:
        RerunRefusedError: for every cause in `Refusal`; nothing was written.
        BundleError: the folder exists, or cannot be written.
        WarehouseError: nothing was ingested yet.
    """
    left_out: list[str] = []
    with (
        open_database(warehouse.root) as connection,
        tempfile.TemporaryDirectory(prefix="kernelindex-tensors-") as temporary,
    ):
        chosen = choose(connection, request.selection)
        if len(chosen) > MAX_ITEMS:
            raise RerunRefusedError(
                Refusal.TOO_MANY_ITEMS,
                f"{len(chosen)} runs were selected; a job holds at most {MAX_ITEMS}",
            )
        stored = _Stored(warehouse, connection, tensor_folders, Path(temporary))
        items: list[BundleItem] = []
        taken: list[ChosenRun] = []
        for run in chosen:
            try:
                items.append(stored.item(run))
                taken.append(run)
            except RerunRefusedError as error:
                if isinstance(request.selection, RunsSelection):
                    raise
                left_out.append(error.message)
                last = error
        if not items:
            raise RerunRefusedError(
                last.refusal, "; ".join(left_out[:5]) + ": nothing is left to measure"
            )
        try:
            bundle = write_bundle(
                folder,
                items,
                reason=request.reason,
                protocol=Protocol(samples=request.samples),
                limits=Limits(
                    deadline_s=request.deadline_s, per_run_timeout_s=request.per_item_timeout_s
                ),
            )
        except OSError as error:
            raise BundleError(f"{folder}: cannot be written ({error.strerror})") from error
    return Prepared(bundle, tuple(taken), tuple(left_out))


class _Stored:
    """Documents and tensor files of published runs."""

    def __init__(
        self,
        warehouse: Warehouse,
        connection: duckdb.DuckDBPyConnection,
        tensor_folders: Sequence[Path],
        temporary: Path,
    ) -> None:
        self._warehouse = warehouse
        self._connection = connection
        self._tensor_folders = tuple(tensor_folders)
        self._temporary = temporary
        self._lines = lru_cache(maxsize=64)(self._read_lines)

    def item(self, run: ChosenRun) -> BundleItem:
        """Everything that measures a run again; raises `RerunRefusedError`."""
        definition = self._definition(run)
        solution = self._solution(run)
        workload = self._workload(run)
        tensors = self._tensors(run, workload)
        try:
            document = json.loads(definition)
            problem_of(document, workload, {name: str(path) for name, path in tensors.items()})
            reference_source(document)
            language = solution_of(json.loads(solution)).language
            if language not in SUPPORTED_LANGUAGES:
                raise DocumentError(
                    "UNSUPPORTED_LANGUAGE",
                    f"it is written in {language!r}; the worker builds "
                    f"{', '.join(SUPPORTED_LANGUAGES)}",
                )
        except DocumentError as error:
            raise RerunRefusedError(
                _REFUSAL_OF_CODE.get(error.code, Refusal.UNSUPPORTED_WORKLOAD),
                f"{run.label} cannot be measured: {error.detail}",
            ) from error
        return BundleItem(
            item_id=f"run-{run.run_digest[7:23]}",
            definition=definition,
            workload=workload,
            solution=solution,
            tensors=tensors,
            reproduces=run.run_digest,
        )

    def _definition(self, run: ChosenRun) -> bytes:
        rows = self._connection.execute(
            "select dataset, revision, path, line from definitions "
            "where operation_digest = $operation and name = $name "
            "and reference_digest is not distinct from $reference order by dataset <> $dataset",
            {
                "operation": run.operation_digest,
                "name": run.definition_name,
                "reference": run.reference_digest,
                "dataset": run.dataset,
            },
        ).fetchall()
        return self._document(
            run, "definition", rows, lambda text: text.get("name") == run.definition_name
        )

    def _solution(self, run: ChosenRun) -> bytes:
        rows = self._connection.execute(
            "select dataset, revision, path, line, document_digest from solutions "
            "where implementation_digest = $implementation order by dataset <> $dataset",
            {"implementation": run.implementation_digest, "dataset": run.dataset},
        ).fetchall()
        digests = {row[4] for row in rows}
        content = self._document(
            run,
            "solution",
            [row[:4] for row in rows],
            lambda text: text.get("name") == run.solution_name,
            digests,
        )
        if not json.loads(content).get("sources"):
            raise RerunRefusedError(
                Refusal.NO_SOURCE, f"{run.label}: the solution was published without sources"
            )
        return content

    def _workload(self, run: ChosenRun) -> dict[str, Any]:
        """The workload as the trace itself repeats it: exactly what the run was measured on."""
        content = self._document(
            run,
            "trace",
            [(run.dataset, run.revision, run.path, run.line)],
            lambda text: (
                (text.get("definition"), text.get("solution"))
                == (run.definition_name, run.solution_name)
            ),
        )
        workload: dict[str, Any] = json.loads(content)["workload"]
        return workload

    def _document(
        self,
        run: ChosenRun,
        kind: str,
        places: Sequence[tuple[Any, ...]],
        is_it: Callable[[dict[str, Any]], bool],
        digests: set[str] | None = None,
    ) -> bytes:
        problem = "no row says where it lies"
        for dataset, revision, path, line in places:
            for file_digest in self._file_digests(dataset, revision, path):
                try:
                    document = self._lines(file_digest).get(line)
                except RawStoreError as error:
                    problem = str(error)
                    continue
                problem = f"{path}:{line} holds another document"
                if document is None or not is_it(_object(document)):
                    continue
                if digests is None or sha256_digest(document) in digests:
                    return document
        raise RerunRefusedError(
            Refusal.NO_SOURCE,
            f"{run.label}: its {kind} is not kept here ({problem}); ingest the dataset again",
        )

    def _file_digests(self, dataset: str, revision: str, path: str) -> list[str]:
        rows = self._connection.execute(
            "select file_digest from source_files where dataset = $dataset and path = $path "
            "order by revision <> $revision, published_at desc",
            {"dataset": dataset, "revision": revision, "path": path},
        ).fetchall()
        return list(dict.fromkeys(str(digest) for (digest,) in rows if digest))

    def _read_lines(self, file_digest: str) -> dict[int, bytes]:
        documents = read_documents(self._warehouse.store.get(file_digest))
        return {found.line: found.data for found in documents if isinstance(found, RawDocument)}

    def _tensors(self, run: ChosenRun, workload: dict[str, Any]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        missing: list[str] = []
        for given in (workload.get("inputs") or {}).values():
            if (given.get("type") or given.get("format")) != "safetensors":
                continue
            name = str(given.get("path"))
            place = next(self._tensor_files(run, name), None)
            if place is None:
                missing.append(name)
            else:
                found[name] = place
        if missing:
            raise RerunRefusedError(
                Refusal.MISSING_TENSORS,
                f"{run.label}: {len(set(missing))} tensor files are not here, e.g. {missing[0]}; "
                "name the dataset's folder with --tensors, or pull the dataset with its tensors",
            )
        return found

    def _tensor_files(self, run: ChosenRun, name: str) -> Iterator[Path]:
        relative = name.removeprefix("./")
        if path_fault(relative) is not None:
            return
        paths = [relative, root_of(run.path) + relative]
        for folder in (*self._tensor_folders, *self._dataset_folders(run.dataset)):
            for path in paths:
                place = folder / path
                if place.is_file() and not _is_pointer(place):
                    yield place
        for snapshot_id in self._snapshot_ids(run.dataset):
            snapshot = self._warehouse.snapshot_of(snapshot_id)
            for file in snapshot.files if snapshot else ():
                if file.path in paths and self._warehouse.store.has(file.digest):
                    target = self._temporary / file.digest[7:]
                    if not target.exists():
                        target.write_bytes(self._warehouse.store.get(file.digest))
                    if not _is_pointer(target):
                        yield target

    def _dataset_folders(self, dataset: str) -> list[Path]:
        rows = self._connection.execute(
            "select distinct location from revisions where dataset = $dataset",
            {"dataset": dataset},
        ).fetchall()
        places = [
            SAMPLE_DIRECTORY if location == SAMPLE else Path(str(location)).expanduser()
            for (location,) in rows
            if location
        ]
        return [place for place in places if place.is_dir()]

    def _snapshot_ids(self, dataset: str) -> list[str]:
        rows = self._connection.execute(
            "select distinct snapshot_id from revisions where dataset = $dataset order by all",
            {"dataset": dataset},
        ).fetchall()
        return [str(snapshot_id) for (snapshot_id,) in rows if snapshot_id]


def _object(document: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(document)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _is_pointer(path: Path) -> bool:
    """Whether a file only stands for content that large file storage keeps elsewhere."""
    with path.open("rb") as stream:
        return stream.read(len(_POINTER)) == _POINTER
