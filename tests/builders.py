"""Miniature datasets, and what comes out of ingesting a directory.

Each builder returns a small, valid upstream document; a test states only what matters to it. The
defaults fit together: one operation, one solution, one workload, one passed trace.
"""

import copy
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from assets.manifests import records
from assets.manifests.normalize import Known, Normalized, normalize
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore

Json = dict[str, Any]
Content = str | bytes | Json | Sequence[Any]

PUBLIC = "hf://datasets/flashinfer-ai/flashinfer-trace"
"""The public dataset, which no copy is taken for unless this is said."""

REVISION = "0123456789abcdef0123456789abcdef01234567"
OPERATION = "toy_add_h8"
SOLUTION = "toy_solution"
AUTHOR = "ann"
UUID = "11111111-2222-4333-8444-555555555555"


def _changed(document: Json, changes: Mapping[str, Any]) -> Json:
    """A document with fields replaced; REMOVED leaves one out, `a__b` reaches into `a`."""
    result = copy.deepcopy(document)
    for name, value in changes.items():
        *path, last = name.split("__")
        part = result
        for step in path:
            part = part[step]
        if value is REMOVED:
            del part[last]
        else:
            part[last] = value
    return result


REMOVED = object()
"""As a builder's argument: the field is left out."""


def definition(name: str = OPERATION, **changes: Any) -> Json:
    """A definition: y = x + w over a variable batch and a constant hidden size."""
    return _changed(
        {
            "name": name,
            "op_type": "toy_add",
            "description": "adds",
            "tags": ["status:draft"],
            "axes": {"batch": {"type": "var"}, "hidden": {"type": "const", "value": 8}},
            "inputs": {
                "x": {"shape": ["batch", "hidden"], "dtype": "bfloat16"},
                "w": {"shape": ["hidden"], "dtype": "float32"},
            },
            "outputs": {"y": {"shape": ["batch", "hidden"], "dtype": "bfloat16"}},
            "reference": "def run(x, w):\n    return x + w\n",
        },
        changes,
    )


def solution(name: str = SOLUTION, **changes: Any) -> Json:
    """A Triton solution of the definition, by `ann`."""
    return _changed(
        {
            "name": name,
            "definition": OPERATION,
            "author": AUTHOR,
            "spec": {
                "language": "triton",
                "target_hardware": ["B200"],
                "entry_point": "main.py::run",
                "dependencies": [],
            },
            "sources": [{"path": "main.py", "content": f"# {name}\ndef run(x, w): ...\n"}],
        },
        changes,
    )


def workload(**changes: Any) -> Json:
    """The workload part of a trace or workload row."""
    return _changed(
        {
            "uuid": UUID,
            "axes": {"batch": 4},
            "inputs": {"x": {"type": "random"}, "w": {"type": "random"}},
        },
        changes,
    )


def trace(**changes: Any) -> Json:
    """A passed trace; `evaluation__performance__latency_ms=2.0` changes one value."""
    return _changed(
        {
            "definition": OPERATION,
            "solution": SOLUTION,
            "workload": workload(),
            "evaluation": {
                "status": "PASSED",
                "log": "",
                "environment": {
                    "hardware": "NVIDIA B200",
                    "libs": {"torch": "2.8.0", "triton": "3.4.0", "cuda": "12.8"},
                },
                "timestamp": "2025-10-21T13:37:42.930971",
                "correctness": {"max_relative_error": 0.001, "max_absolute_error": 0.5},
                "performance": {
                    "latency_ms": 0.0125,
                    "reference_latency_ms": 0.05,
                    "speedup_factor": 4.0,
                },
            },
        },
        changes,
    )


def workload_row(**changes: Any) -> Json:
    """One line of a workload file."""
    return {
        "definition": OPERATION,
        "solution": None,
        "workload": workload(**changes),
        "evaluation": None,
    }


def json_lines(documents: Sequence[Any]) -> str:
    """Documents one a line."""
    return "".join(json.dumps(document) + "\n" for document in documents)


def text_of(content: Content) -> str | bytes:
    """What a file holds: text as it is, one document as JSON, several as JSON Lines."""
    if isinstance(content, str | bytes):
        return content
    return json.dumps(content) if isinstance(content, dict) else json_lines(content)


DEFINITION_FILE = f"definitions/toy/{OPERATION}.json"
SOLUTION_FILE = f"solutions/{AUTHOR}/toy/{OPERATION}/{SOLUTION}.json"
TRACE_FILE = f"traces/{AUTHOR}/toy/{OPERATION}.jsonl"
WORKLOAD_FILE = f"workloads/toy/{OPERATION}.jsonl"


def dataset(root: Path, files: Mapping[str, Content] | None = None, **replaced: Content) -> Path:
    """Write a dataset: the default definition, solution and trace, and `files` beside or over them.

    `definition=`, `solution=`, `traces=` and `workloads=` replace the default file of that kind.
    """
    contents: dict[str, Content] = {
        DEFINITION_FILE: replaced.get("definition", definition()),
        SOLUTION_FILE: replaced.get("solution", solution()),
        TRACE_FILE: replaced.get("traces", [trace()]),
    }
    if "workloads" in replaced:
        contents[WORKLOAD_FILE] = replaced["workloads"]
    return write_files(root, {**contents, **(files or {})})


def write_files(root: Path, files: Mapping[str, Content]) -> Path:
    """Write files by relative path and return the root."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = text_of(content)
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return root


@dataclass
class Ingested:
    """The rows of one normalization, by table, and its counts."""

    normalized: Normalized
    tables: dict[str, list[Json]]

    def __getitem__(self, table: str) -> list[Json]:
        return self.tables[table]

    @cached_property
    def problems(self) -> list[tuple[str, int, str]]:
        """(path, line, reason) of every quarantined item, warnings left out."""
        return sorted(
            (row["path"], row["line"], row["reason"])
            for row in self["quarantine"]
            if row["severity"] == "error"
        )

    @property
    def reasons(self) -> list[str]:
        """Reasons of the quarantined items, sorted, warnings left out."""
        return sorted(reason for _, _, reason in self.problems)

    def check_sums(self) -> None:
        """Assert that every item that was read came out once: per kind and per file."""
        assert_sums_add_up(self)


def ingest(
    directory: Path,
    *,
    revision: str | None = None,
    name: str | None = None,
    known: Known | None = None,
    processes: int = 1,
    work: Path | None = None,
) -> Ingested:
    """Pull and normalize a directory and read back every row it wrote.

    What is written on the way goes under `work`, whose raw store may serve several ingestions;
    without one it is removed.
    """
    if work is None:
        with tempfile.TemporaryDirectory() as place:
            return ingest(
                directory,
                revision=revision,
                name=name,
                known=known,
                processes=processes,
                work=Path(place),
            )
    store = RawStore(work / "raw")
    snapshot = pull(str(directory), revision=revision, authors=None, store=store, name=name)
    staging = Path(tempfile.mkdtemp(dir=work, prefix="staging-"))
    normalized = normalize(snapshot, store, staging, known or Known(), processes=processes)
    return Ingested(normalized, {table: rows_of(staging, table) for table in records.SCHEMAS})


def rows_of(staging: Path, table: str) -> list[Json]:
    """All rows of the parts of one table."""
    return [
        row
        for part in sorted((staging / table).glob("*.parquet"))
        for row in pq.ParquetFile(part).read(use_threads=False).to_pylist()
    ]


# Tables with one row for each published document; cases are published beside their runs.
_DOCUMENT_TABLES = ("operations", "implementations", "runs")


def assert_sums_add_up(ingested: Ingested) -> None:
    """Read = published + quarantined + workload rows: file by file, and by kind in the counts."""
    published = Counter(row["path"] for table in _DOCUMENT_TABLES for row in ingested[table])
    errors = [row for row in ingested["quarantine"] if row["severity"] == "error"]
    quarantined = Counter(row["path"] for row in errors)
    by_kind: Counter[str] = Counter()
    for file in ingested["source_files"]:
        path = file["path"]
        assert file["quarantined"] == quarantined[path], path
        found = published[path] + quarantined[path] + file["workload_rows"]
        assert file["documents"] == found, path
        # A file whose place does not say its kind was read as what its fields say.
        by_kind[file["kind"] or _kind_by_rows(ingested, path)] += published[path]
    counts = ingested.normalized.counts
    assert counts.quarantined == Counter(row["kind"] for row in errors)
    for kind in counts.read:
        found = by_kind[kind] + counts.quarantined[kind] + counts.workload_rows[kind]
        assert counts.read[kind] == found, kind


def _kind_by_rows(ingested: Ingested, path: str) -> str:
    for table, kind in (("operations", "definition"), ("implementations", "solution")):
        if any(row["path"] == path for row in ingested[table]):
            return kind
    return "trace"
