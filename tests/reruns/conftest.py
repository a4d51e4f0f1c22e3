"""Fixtures for the rerun worker: an interpreter with torch, the built worker, finished runs."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from assets.reruns.bundles import (
    BundleItem,
    Limits,
    ResultBundle,
    read_result,
    write_bundle,
)
from assets.reruns.worker.build import build_worker
from assets.reruns.worker.job import JobBundle, Protocol
from assets.tables.warehouse import Warehouse
from tests.reruns.dishonest.cases import Case, load_cases
from tests.warehouses import ingest_into

QUICK = Protocol(samples=12, wall_samples=6, rounds=2, warmup_s=0.02, kept_calls=3)


@pytest.fixture(scope="session")
def worker_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_worker(tmp_path_factory.mktemp("worker") / "kernelindex_worker.pyz")


@dataclass(frozen=True)
class Run:
    """A worker that has ended."""

    exit_code: int
    events: list[dict[str, object]]
    error: str
    out: Path
    bundle: JobBundle

    def result(self) -> ResultBundle:
        return read_result(self.out, self.bundle)


@dataclass(frozen=True)
class Bench:
    """Everything needed to start workers in one folder."""

    command: tuple[str, ...]
    folder: Path

    def bundle(self, items: Sequence[BundleItem], limits: Limits | None = None) -> JobBundle:
        number = len(list(self.folder.glob("job-*")))
        return write_bundle(
            self.folder / f"job-{number}", items, reason="test", protocol=QUICK, limits=limits
        )

    def arguments(self, bundle: JobBundle, *more: str) -> list[str]:
        out = self.out_of(bundle)
        locks = self.folder / "locks"
        return [
            *self.command, "run", str(bundle.root), "--out", str(out), "--gpu", "cpu",
            "--lock-dir", str(locks), *more,
        ]  # fmt: skip

    def out_of(self, bundle: JobBundle) -> Path:
        return self.folder / f"result-of-{bundle.root.name}"

    def start(
        self, bundle: JobBundle, *more: str, environment: dict[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.arguments(bundle, *more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def finish(self, process: "subprocess.Popen[str]", bundle: JobBundle) -> Run:
        output, error = process.communicate(timeout=120)
        events = [json.loads(line) for line in output.splitlines()]
        return Run(process.returncode, events, error, self.out_of(bundle), bundle)

    def run(self, bundle: JobBundle, *more: str, environment: dict[str, str] | None = None) -> Run:
        return self.finish(self.start(bundle, *more, environment=environment), bundle)


@pytest.fixture(scope="module")
def bench(torch_python: str, worker_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench((torch_python, str(worker_file)), tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="session")
def plain_case() -> Case:
    return next(case for case in load_cases("cpu") if case.name == "honest_plain")


@pytest.fixture(scope="session")
def item_with(plain_case: Case) -> Callable[..., BundleItem]:
    """Builds an item on the small normalization with any source as its solution."""

    def build(source: str, item_id: str = "item", **spec: object) -> BundleItem:
        solution = {
            **plain_case.solution,
            "spec": {**plain_case.solution["spec"], **spec},
            "sources": [{"path": "main.py", "content": source}],
        }
        return BundleItem(item_id, plain_case.definition, plain_case.workload, solution)

    return build


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with the sample as it was reported, to be read only."""
    root = tmp_path_factory.mktemp("sample-index") / "warehouse"
    ingest_into(root)
    return Warehouse(root)
