"""Histories of a dataset: what its revisions hold, and what must be shown of them.

A history is a list of revisions; each holds documents by path. `expected_runs` says which runs
must be shown when some of them were read, worked out from the documents alone: it knows nothing of
digests, publications or SQL.
"""

import copy
import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from assets.leaderboards.derive import derive
from assets.manifests.normalize import normalize, normalize_again
from assets.manifests.staging import load_normalized, save_normalized
from assets.tables.contracts import PUBLISHED
from assets.tables.database import create_published_view, publications_table
from assets.tables.ingestion import IngestionReport, report_of
from assets.tables.publication import PublicationRequest, publish
from assets.tables.settled import settle
from assets.traces.git_objects import blob_id
from assets.traces.snapshot import DatasetFile, DatasetSnapshot, save_snapshot
from pipelines.resources import OpenWarehouse
from tests.builders import Json, definition, json_lines, solution, trace, workload

DATASET = "own/history"
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)

# What a definition may be changed to in place: a constant, a dtype, an input, the reference, words.
DEFINITION_STATES: tuple[Json, ...] = (
    {},
    {"axes__hidden__value": 16},
    {"outputs__y__dtype": "float32"},
    {"inputs__b": {"shape": ["hidden"], "dtype": "float32"}},
    {"reference": "def run(x, w):\n    return w + x\n"},
    {"description": "adds, in other words"},
)


SHARED_SOURCE = 2


@dataclass
class SolutionFile:
    """A solution as a revision has it."""

    name: str
    definition: str
    folder: str | None = "ann"
    author: str = "ann"
    source: int = 0
    description: str = ""

    @property
    def path(self) -> str:
        """Where it lies; a layout without author folders has no folder."""
        folder = "" if self.folder is None else f"{self.folder}/"
        return f"solutions/{folder}toy/{self.definition}/{self.name}.json"

    @property
    def content(self) -> tuple[str, str, int]:
        """What makes it the same solution wherever it lies and whoever is named."""
        return self.name, self.definition, self.source

    @property
    def source_text(self) -> str:
        """Its one source file; the last of the sources is the same whatever the solution's name."""
        return "# shared\n" if self.source == SHARED_SOURCE else f"# {self.name} {self.source}\n"

    def document(self) -> Json:
        """The document."""
        return solution(
            self.name,
            definition=self.definition,
            author=self.author,
            description=self.description,
            sources=[{"path": "main.py", "content": self.source_text}],
        )


@dataclass(frozen=True, order=True)
class Line:
    """A line of a trace file; its number makes it one of a kind."""

    number: int
    definition: str
    solution: str

    def document(self) -> Json:
        """The trace."""
        return trace(
            definition=self.definition,
            solution=self.solution,
            workload=workload(uuid=f"w{self.number % 2}", axes={"batch": 1 + self.number % 2}),
            evaluation__timestamp=f"2025-10-21T00:00:{self.number:02d}",
            evaluation__performance__latency_ms=1 + self.number / 100,
        )


@dataclass
class Revision:
    """What one revision holds: definitions by name (a state), solutions and trace lines by file."""

    definitions: dict[str, int] = field(default_factory=dict)
    solutions: dict[str, SolutionFile] = field(default_factory=dict)
    traces: dict[str, list[Line]] = field(default_factory=dict)
    number: int = 0

    def next(self) -> "Revision":
        """A copy, to be changed into the revision after."""
        following = copy.deepcopy(self)
        following.number += 1
        return following

    @property
    def commit(self) -> str:
        """The revision's name; names do not follow each other as the revisions do."""
        return hashlib.sha1(str(self.number).encode(), usedforsecurity=False).hexdigest()

    def files(self) -> dict[str, str]:
        """The documents by path."""
        found = {
            f"definitions/toy/{name}.json": json.dumps(definition(name, **DEFINITION_STATES[state]))
            for name, state in self.definitions.items()
        }
        found |= {item.path: json.dumps(item.document()) for item in self.solutions.values()}
        return found | {
            path: json_lines([line.document() for line in lines])
            for path, lines in self.traces.items()
            if lines
        }

    def readings(self) -> Iterable[tuple[Line, int, SolutionFile]]:
        """Lines that can be published here, with what they are bound to."""
        for lines in self.traces.values():
            for line in lines:
                named = self.solutions.get(line.solution)
                if (
                    line.definition in self.definitions
                    and named is not None
                    and named.definition == line.definition
                ):
                    yield line, self.definitions[line.definition], named


ShownRun = tuple[int, str, str, str, str]
"""Line, operation, reference, source and first revision of the solution."""


def expected_runs(revisions: Iterable[Revision]) -> set[ShownRun]:
    """The runs that must be shown once these revisions were read, in whatever order."""
    state_of_line: dict[Line, tuple[str, str]] = {}
    first_revision: dict[tuple[str, str, int], str] = {}
    shown: set[ShownRun] = set()
    for revision in sorted(revisions, key=lambda item: item.number):
        for item in revision.solutions.values():
            if item.definition in revision.definitions:
                first_revision.setdefault(item.content, revision.commit)
        for line, state, named in revision.readings():
            meaning = meaning_of(state)
            if state_of_line.setdefault(line, meaning) == meaning:
                earliest = first_revision[named.content]
                shown.add((line.number, *meaning, named.source_text, earliest))
    return shown


def meaning_of(state: int) -> tuple[str, str]:
    """What of a definition's state an operation is, and its reference; words change neither."""
    document = definition(**DEFINITION_STATES[state])
    spec = {name: document[name] for name in ("axes", "inputs", "outputs")}
    return json.dumps(spec, sort_keys=True), document["reference"]


def snapshot_of(revision: Revision, warehouse: OpenWarehouse) -> DatasetSnapshot:
    """A revision taken into a warehouse's raw store."""
    files = []
    for path, text in sorted(revision.files().items()):
        data = text.encode()
        blob = blob_id(data)
        digest = warehouse.store.put(data, blob)
        files.append(DatasetFile(path=path, digest=digest, blob_id=blob, size_bytes=len(data)))
    return DatasetSnapshot(
        dataset=DATASET,
        url=None,
        location="history",
        revision=revision.commit,
        revision_at=_FIRST_DAY + timedelta(days=revision.number),
        authors=None,
        files=tuple(files),
    )


def ingest_snapshot(warehouse: OpenWarehouse, snapshot: DatasetSnapshot) -> IngestionReport:
    """The stages of the ingest job up to the publication, without Dagster around them."""
    save_snapshot(snapshot, warehouse.snapshot_file(snapshot.snapshot_id))
    staging = warehouse.staging("test")
    known = warehouse.known(snapshot)
    outcome = normalize(snapshot, warehouse.store, staging / "rows", known, processes=1)
    if outcome.moved:
        later = warehouse.later_snapshots(snapshot)
        normalize_again(later, warehouse.store, staging / "rows", known, outcome.moved)
    record = publish(
        warehouse,
        staging / "rows",
        PublicationRequest(
            kind="ingest",
            dataset=snapshot.dataset,
            revision=snapshot.revision,
            snapshot_id=snapshot.snapshot_id,
        ),
    )
    save_normalized(outcome, staging)
    counts = load_normalized(staging)
    settle(warehouse, counts)
    shutil.rmtree(staging)
    return report_of(counts, record, warehouse)


def read_in_order(
    root: Path, revisions: Sequence[Revision]
) -> tuple[OpenWarehouse, list[IngestionReport]]:
    """A new warehouse that has read these revisions one after the other."""
    shutil.rmtree(root, ignore_errors=True)
    warehouse = OpenWarehouse(root)
    warehouse.prepare()
    reports = [ingest_snapshot(warehouse, snapshot_of(item, warehouse)) for item in revisions]
    return warehouse, reports


def derived(warehouse: OpenWarehouse, *wanted: str) -> duckdb.DuckDBPyConnection:
    """Some tables of the database, made in memory."""
    connection = duckdb.connect()
    for table in PUBLISHED:
        create_published_view(connection, warehouse, table)
    records = publications_table(warehouse.publications())
    connection.from_arrow(records).create("published_publications")
    derive(
        connection, wanted, [*(f"published_{name}" for name in PUBLISHED), "published_publications"]
    )
    return connection
