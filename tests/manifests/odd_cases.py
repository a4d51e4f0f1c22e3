"""The odd cases of the public index: what it does with each, and what we do."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.builders import PUBLIC, Ingested, Json, ingest, write_files

PublicOutcome = Literal["publishes", "drops", "aborts", "fails"]

_TABLES = {
    "SoftwareProject": ("project", "projects", "project_digest"),
    "OperationSpec": ("operation", "operations", "operation_digest"),
    "WorkloadCase": ("case", "workloads", "workload_digest"),
    "ImplementationRevision": ("implementation", "implementations", "implementation_digest"),
    "ExecutionEnvironment": ("environment", "environments", "environment_digest"),
    "BenchmarkRun": ("run", "runs", "run_digest"),
}


@dataclass(frozen=True)
class OddCase:
    """A miniature dataset with what the public index made of it."""

    name: str
    files: dict[str, str]
    outcome: Json

    @property
    def public_outcome(self) -> PublicOutcome:
        """`aborts`: the whole import stops; `fails`: publication fails; `drops`: items vanish."""
        if self.outcome["aborts"]:
            return "aborts"
        if not self.outcome["publish"]["ok"]:
            return "fails"
        lost = self.outcome["issues"] or self.outcome["ambiguities"]
        return "drops" if lost else "publishes"

    def objects(self, kind: str) -> list[Json]:
        """What the public index makes, by kind; repeated digests once."""
        return [
            item
            for item in self.outcome["objects"]
            if item["kind"] == kind and not item.get("duplicate")
        ]


@dataclass(frozen=True)
class Difference:
    """How our outcome differs from the public index's: objects more and less, and reasons."""

    objects: str
    reasons: str

    def __bool__(self) -> bool:
        return bool(self.objects or self.reasons)


def load_odd_cases(golden: Path) -> tuple[str, list[OddCase]]:
    """The revision the cases are at, and the cases."""
    content = json.loads((golden / "odd-cases.json").read_text())
    cases = [OddCase(case["name"], case["files"], case["outcome"]) for case in content["cases"]]
    return content["revision"], cases


def ingest_case(case: OddCase, revision: str, directory: Path, work: Path) -> Ingested:
    """Write a case's files and ingest them; `work` is as in `ingest`."""
    return ingest(write_files(directory, case.files), revision=revision, name=PUBLIC, work=work)


def difference(case: OddCase, ours: Ingested) -> Difference:
    """Compare digests kind by kind; `+run` is ours only, `-run` the public index's only."""
    signs = []
    for kind, (name, table, column) in _TABLES.items():
        expected = {item["digest"] for item in case.objects(kind)}
        found = {row[column] for row in ours[table]}
        for sign, count in (("+", len(found - expected)), ("-", len(expected - found))):
            if count:
                signs.append(f"{sign}{count} {name}")
    reasons = Counter(ours.reasons)
    return Difference(
        ", ".join(signs),
        ", ".join(reason if n == 1 else f"{n} {reason}" for reason, n in sorted(reasons.items())),
    )
