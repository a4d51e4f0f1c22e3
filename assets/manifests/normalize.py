"""Normalize one dataset snapshot: raw files in, Parquet parts and counts out.

The parts lie in a staging directory, one folder per table of `records.SCHEMAS`; making them a
publication is the work of `assets.tables`. Definitions and solutions are read here; trace and
workload files are read by a pool of processes, chunk by chunk, so that memory does not grow with
the number of traces. Nothing of a dataset is ever run.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from assets.manifests import rows
from assets.manifests.catalog import Catalog, read_catalog
from assets.manifests.implementations import Content, DatasetOrigin
from assets.manifests.instants import InstantError, utc_instant
from assets.manifests.quarantine import QuarantinedItem, Reason, Severity
from assets.manifests.reading import (
    ChunkReader,
    Reading,
    ReadingProcesses,
    Writing,
    chunks_of,
    reading_processes,
)
from assets.manifests.runs import trace_protocol
from assets.manifests.trace_files import FileOutcome, References, inputs_digests
from assets.traces.changes import compare
from assets.traces.layout import author_of, kind_of, roots_of
from assets.traces.lines import Malformed, read_documents
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile, DatasetSnapshot

Kind = Literal["definition", "solution", "workload", "trace", "unplaced"]

_IN_PROCESS_BYTES = 3 * 1024 * 1024
# A project's own settings and results may lie beside its documents, hundreds of them.
_MOST_UNPLACED = 5


@dataclass(frozen=True)
class FileState:
    """What is known of a file's content that was normalized before."""

    references: References
    inputs_digest: str
    documents: int
    workload_rows: int
    quarantined: int
    reasons: Mapping[str, int]
    newest_trace_at: datetime | None


@dataclass
class Counts:
    """Documents by kind: `read` is the sum of the others once publication has split them."""

    read: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    workload_rows: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, order=True)
class KnownRevision:
    """A revision at its place in the dataset's order."""

    position: int
    revision: str


@dataclass(frozen=True)
class Identities:
    """The revisions under which solutions are known, by digest of their content.

    `later` are those that are known only from later revisions than the one to be read.
    """

    known: Mapping[str, KnownRevision] = field(default_factory=dict)
    later: Mapping[str, KnownRevision] = field(default_factory=dict)

    def revision_of(self, content: Content) -> str | None:
        """The earliest revision that a content is known from, None where there is none."""
        return _earliest(self.known, content)

    def is_later(self, content: Content) -> bool:
        """Whether a content is known from later revisions only."""
        return _earliest(self.known, content) is None and _earliest(self.later, content) is not None

    def with_moved(self, moved: Mapping[str, str]) -> "Identities":
        """What is known once contents are known from an earlier revision than before."""
        earlier = {digest: KnownRevision(0, revision) for digest, revision in moved.items()}
        return Identities({**self.later, **self.known, **earlier})


def _earliest(revisions: Mapping[str, KnownRevision], content: Content) -> str | None:
    found = [
        revisions[digest]
        for digest in (content.digest, content.document_digest)
        if digest in revisions
    ]
    return min(found).revision if found else None


@dataclass(frozen=True)
class Known:
    """What earlier publications of the dataset say.

    `files` gives the state of each (path, file digest) that this revision or an earlier one has,
    `settled` the counts of this very snapshot where it was the last of its dataset to be
    ingested, by the same rules, and `previous` the revision that this one is compared with file
    by file.
    """

    identities: Identities = field(default_factory=Identities)
    files: Mapping[tuple[str, str], FileState] = field(default_factory=dict)
    settled: Counts | None = None
    previous: DatasetSnapshot | None = None


@dataclass
class Normalized:
    """The outcome of one normalization.

    `moved` are contents of solutions that were known from later revisions and now have the
    identity of this one: the later revisions must be read again with it.
    """

    staging: Path
    snapshot: DatasetSnapshot
    counts: Counts
    newest_trace_at: datetime | None
    moved: dict[str, str]


@dataclass(frozen=True)
class NormalizeProgress:
    """How far the trace files are read."""

    files_done: int
    files_total: int
    documents: int


Progress = Callable[[NormalizeProgress], None]


def normalize(
    snapshot: DatasetSnapshot,
    store: RawStore,
    staging: Path,
    known: Known,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Normalized:
    """Write the rows of a snapshot as Parquet parts under `staging`.

    `processes` is how many read traces at once (default: the machine's processors).

    Raises:
        DatasetError: a raw file that is gone or damaged.
    """
    if known.settled is not None:
        return Normalized(staging, snapshot, known.settled, None, {})
    processes = processes or os.cpu_count() or 1
    traces_bytes = sum(file.size_bytes for file in snapshot.files if _is_read_later(file, known))
    if processes == 1 or traces_bytes <= _IN_PROCESS_BYTES:
        return _normalize(snapshot, store, staging, known, None, processes, progress)
    with reading_processes(processes) as readers:
        return _normalize(snapshot, store, staging, known, readers, processes, progress)


def _is_read_later(file: DatasetFile, known: Known) -> bool:
    is_trace = kind_of(file.path) in ("trace", "workload", None)
    return is_trace and (file.path, file.digest) not in known.files


def _normalize(
    snapshot: DatasetSnapshot,
    store: RawStore,
    staging: Path,
    known: Known,
    readers: ReadingProcesses | None,
    processes: int,
    progress: Progress | None,
) -> Normalized:
    origin = DatasetOrigin(snapshot.dataset, snapshot.url, snapshot.revision)
    by_kind = _files_by_kind(snapshot, store)
    found_catalog = read_catalog(
        origin,
        by_kind["definition"],
        by_kind["solution"],
        lambda file: store.get(file.digest, file.size_bytes),
        lambda content: known.identities.revision_of(content) or snapshot.revision,
        roots_of(file.path for file in snapshot.files),
    )
    catalog, documents = found_catalog.catalog, found_catalog.documents
    rejected = found_catalog.rejected + _unplaced(by_kind["unplaced"], snapshot)

    counts = Counts()
    for kind in ("definition", "solution"):
        counts.read[kind] += sum(documents[file.path] for file in by_kind[kind])
    for item in rejected:
        counts.quarantined[item.kind] += item.severity is Severity.ERROR
        if item.kind == "unplaced":
            counts.read["unplaced"] += 1
            documents[item.path] = 1
    for file in by_kind["unplaced"]:
        documents.setdefault(file.path, 0)

    to_read: list[DatasetFile] = []
    for file in by_kind["trace"] + by_kind["workload"]:
        state = known.files.get((file.path, file.digest))
        if state is not None and _is_unchanged(state, file, catalog):
            _count_unchanged(counts, _kind(file), state)
        else:
            to_read.append(file)
    reading = Reading(catalog, store.root, staging, snapshot.snapshot_id)
    part = snapshot.snapshot_id[7:19]

    def described() -> Writing:
        batch = rows.RowBatch(snapshot.dataset, snapshot.revision)
        _add_catalog(batch, catalog)
        return Writing(batch, staging, f"{part}-catalog")

    outcomes = _read_traces(reading, to_read, described, readers, processes, progress)
    for outcome in outcomes:
        kind = _kind_of_path(outcome.path)
        counts.read[kind] += outcome.documents
        counts.workload_rows[kind] += outcome.workload_rows
        counts.quarantined[kind] += len(outcome.quarantined)
        documents[outcome.path] = outcome.documents
    newest_trace_at = _newest(outcomes, known, snapshot)
    listed = rows.RowBatch(snapshot.dataset, snapshot.revision)
    _add_revision(listed, snapshot, known.previous, newest_trace_at)
    _add_files(listed, snapshot, known, catalog, outcomes, documents, rejected)
    writing = Writing(listed, staging, f"{part}-files")
    if readers is not None:
        readers.write(writing)
    else:
        writing.do()
    found = rejected + _items_of(outcomes)
    counts.reasons.update(str(item.reason) for item in found if item.severity is Severity.ERROR)
    moved = {
        digest: item.source_revision
        for item, _ in catalog.implementation_rows
        if known.identities.is_later(item.content)
        for digest in (item.content.digest, item.content.document_digest)
    }
    return Normalized(staging, snapshot, counts, newest_trace_at, moved)


_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]+)"')


def newest_trace_time(snapshot: DatasetSnapshot, store: RawStore) -> datetime | None:
    """The newest time that any trace of a snapshot states, without reading the documents."""
    newest: datetime | None = None
    for file in snapshot.files:
        if kind_of(file.path) != "trace":
            continue
        for text in set(_TIMESTAMP.findall(store.get(file.digest))):
            try:
                at = _naive(utc_instant(text.decode("utf-8", "replace")))
            except InstantError:
                continue
            newest = at if newest is None or at > newest else newest
    return newest


def normalize_again(
    snapshots: Iterable[DatasetSnapshot],
    store: RawStore,
    staging: Path,
    known: Known,
    moved: Mapping[str, str],
) -> None:
    """Stage the rows of later revisions once more, with the identities that moved.

    Every trace is read again: its run has another implementation digest now.
    """
    identities = known.identities.with_moved(moved)
    for snapshot in snapshots:
        normalize(snapshot, store, staging, Known(identities=identities))


def _files_by_kind(snapshot: DatasetSnapshot, store: RawStore) -> dict[Kind, list[DatasetFile]]:
    by_kind: dict[Kind, list[DatasetFile]] = {
        "definition": [],
        "solution": [],
        "workload": [],
        "trace": [],
        "unplaced": [],
    }
    for file in snapshot.files:
        if not file.path.endswith((".json", ".jsonl")):
            continue
        by_kind[kind_of(file.path) or _kind_by_content(store.get(file.digest))].append(file)
    return by_kind


def _kind_by_content(data: bytes) -> Kind:
    """The kind of a file whose place does not say it: by the fields of its first document."""
    first = next(read_documents(data), None)
    if first is None or isinstance(first, Malformed):
        return "unplaced"
    head = first.data
    if b'"workload"' in head and b'"definition"' in head:
        return "trace"
    if b'"sources"' in head and b'"definition"' in head:
        return "solution"
    if b'"axes"' in head and b'"inputs"' in head and b'"outputs"' in head:
        return "definition"
    return "unplaced"


def _unplaced(files: Sequence[DatasetFile], snapshot: DatasetSnapshot) -> list[QuarantinedItem]:
    """What could not be placed or read; many files that are no documents are one item."""
    message = "neither the path nor the fields say what this file holds"
    listed = files
    if len(files) > _MOST_UNPLACED:
        listed = files[:1]
        folders = sorted({file.path.rpartition("/")[0] or "." for file in files})
        named = ", ".join(folders[:_MOST_UNPLACED])
        more = f" and {len(folders) - _MOST_UNPLACED} more" if len(folders) > _MOST_UNPLACED else ""
        message += (
            f", nor what {len(files) - 1} others hold, which are listed together with it; folders "
            f"with such files: {named}{more}"
        )
    items = [
        QuarantinedItem(Reason.UNPLACED_FILE, "unplaced", file.path, 1, "$", message, "")
        for file in listed
    ]
    return items + [
        QuarantinedItem(
            Reason.UNREADABLE_FILE,
            "unplaced",
            problem.path,
            1,
            "$",
            f"{problem.reason}: {problem.message}",
            "",
        )
        for problem in snapshot.problems
    ]


def _items_of(outcomes: Iterable[FileOutcome]) -> list[QuarantinedItem]:
    return [item for outcome in outcomes for item in outcome.quarantined + outcome.warnings]


def _kind(file: DatasetFile) -> str:
    return _kind_of_path(file.path)


def _kind_of_path(path: str) -> str:
    return "workload" if kind_of(path) == "workload" else "trace"


def _is_unchanged(state: FileState, file: DatasetFile, catalog: Catalog) -> bool:
    current = state.references.inputs_digest(catalog, file.path)
    return current == state.inputs_digest


def _count_unchanged(counts: Counts, kind: str, state: FileState) -> None:
    counts.read[kind] += state.documents
    counts.workload_rows[kind] += state.workload_rows
    counts.quarantined[kind] += state.quarantined
    counts.reasons.update(state.reasons)
    counts.unchanged[kind] += state.documents - state.workload_rows - state.quarantined


def _add_catalog(batch: rows.RowBatch, catalog: Catalog) -> None:
    rows.add_protocol(batch, trace_protocol())
    for operation, at in catalog.operation_rows:
        rows.add_operation(batch, operation, at)
    projects: set[str] = set()
    for implementation, at in catalog.implementation_rows:
        if implementation.project.manifest.digest not in projects:
            projects.add(implementation.project.manifest.digest)
            rows.add_project(batch, implementation.project, at)
        rows.add_implementation(batch, implementation, at)


def _newest(
    outcomes: list[FileOutcome], known: Known, snapshot: DatasetSnapshot
) -> datetime | None:
    read = {outcome.path: outcome.newest_trace_at for outcome in outcomes}
    times = [
        read[file.path]
        if file.path in read
        else known.files[file.path, file.digest].newest_trace_at
        for file in snapshot.files
        if file.path in read or (file.path, file.digest) in known.files
    ]
    return max((_naive(time) for time in times if time is not None), default=None)


def _naive(time: datetime) -> datetime:
    return time.replace(tzinfo=None)


def _add_revision(
    batch: rows.RowBatch,
    snapshot: DatasetSnapshot,
    previous: DatasetSnapshot | None,
    newest_trace_at: datetime | None,
) -> None:
    """When the revision is from: its commit, else the newest trace that it holds."""
    committed_at = snapshot.revision_at and _naive(snapshot.revision_at)
    changes = compare(previous, snapshot)
    batch.add(
        "revisions",
        "",
        None,
        revision_at=committed_at or newest_trace_at,
        revision_at_source="commit" if committed_at else "traces",
        authors=list(snapshot.authors) if snapshot.authors is not None else None,
        snapshot_id=snapshot.snapshot_id,
        location=snapshot.location,
        url=snapshot.url,
        files=len(snapshot.files),
        previous_revision=previous.revision if previous else None,
        files_added=len(changes.added),
        files_changed=len(changes.changed),
        files_renamed=len(changes.renamed),
        files_removed=len(changes.removed),
    )


def _add_files(
    batch: rows.RowBatch,
    snapshot: DatasetSnapshot,
    known: Known,
    catalog: Catalog,
    outcomes: list[FileOutcome],
    documents: Mapping[str, int],
    rejected: list[QuarantinedItem],
) -> None:
    file_digests = {file.path: file.digest for file in snapshot.files}
    inputs = inputs_digests(catalog, outcomes)
    by_path = {outcome.path: outcome for outcome in outcomes}
    found = rejected + _items_of(outcomes)
    found_reasons = _reasons_by_file(found)
    for placed_path, digest in _solution_inputs(catalog, rejected).items():
        inputs[placed_path] = digest
    for file in snapshot.files:
        outcome, state = by_path.get(file.path), known.files.get((file.path, file.digest))
        if outcome is None and file.path not in documents and state is not None:
            inputs[file.path] = state.inputs_digest
        if outcome is None and file.path not in documents and state is not None:
            reasons = dict(state.reasons)
        else:
            reasons = dict(found_reasons.get(file.path, {}))
        batch.add(
            "source_files",
            file.path,
            None,
            kind=kind_of(file.path),
            author_directory=author_of(file.path),
            file_digest=file.digest,
            blob_id=file.blob_id,
            size_bytes=file.size_bytes,
            documents=documents.get(file.path, state.documents if state else 0),
            workload_rows=outcome.workload_rows
            if outcome
            else (state.workload_rows if state else 0),
            quarantined=sum(reasons.values()),
            reasons_json=json.dumps(reasons, sort_keys=True),
            references_json=outcome.references.to_json()
            if outcome
            else (state.references.to_json() if state else References().to_json()),
            inputs_digest=inputs.get(file.path, ""),
            newest_trace_at=_file_time(outcome, state),
        )
    rows.add_quarantined(batch, found, file_digests, inputs)


def _reasons_by_file(items: Iterable[QuarantinedItem]) -> dict[str, Counter[str]]:
    reasons: dict[str, Counter[str]] = {}
    for item in items:
        if item.severity is Severity.ERROR:
            reasons.setdefault(item.path, Counter())[str(item.reason)] += 1
    return reasons


def _file_time(outcome: FileOutcome | None, state: FileState | None) -> datetime | None:
    source = outcome or state
    return _naive(source.newest_trace_at) if source and source.newest_trace_at else None


def _solution_inputs(catalog: Catalog, rejected: list[QuarantinedItem]) -> dict[str, str]:
    """A solution depends on its definition: whether it is published can change with it."""
    states = {at.path: item.digest for item, at in catalog.implementation_rows}
    states |= {
        item.path: f"{item.reason}: {item.message}" for item in rejected if item.kind == "solution"
    }
    return states


def _read_traces(
    reading: Reading,
    files: list[DatasetFile],
    also: Callable[[], Writing],
    readers: ReadingProcesses | None,
    processes: int,
    progress: Progress | None,
) -> list[FileOutcome]:
    done: list[FileOutcome] = []

    def report(outcomes: list[FileOutcome]) -> None:
        done.extend(outcomes)
        if progress is not None:
            progress(NormalizeProgress(len(done), len(files), sum(item.documents for item in done)))

    chunks = chunks_of(files, processes)
    if readers is not None:
        readers.read(reading, chunks, report, also)
    else:
        also().do()
        reader = ChunkReader(reading)
        for chunk in chunks:
            report(reader.read(chunk))
    return done
