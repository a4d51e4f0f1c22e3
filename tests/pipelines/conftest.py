"""A deployment in a temporary folder, and ways to drive it as people do."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.settings import Settings

Run = Callable[..., Result]


def runner_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a warehouse and checks its exit code."""
    monkeypatch.setenv("KERNELINDEX_WAREHOUSE", str(root))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str, code: int = 0, input: str | None = None) -> Result:
        result = CliRunner().invoke(app, list(arguments), prog_name="kernelindex", input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Deployment:
    root: Path

    @property
    def settings(self) -> Settings:
        return Settings(self.root / "warehouse", self.root / "dagster", "sample")

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KERNELINDEX_WAREHOUSE": str(self.settings.warehouse),
            "DAGSTER_HOME": str(self.settings.dagster_home),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "100",
        }

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pipelines.cli", *arguments],
            env={**self.environment, **environment},
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def ingest(self, *arguments: str) -> dict:
        done = self.run("ingest", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def published_files(self) -> set[str]:
        folder = self.settings.warehouse / "publications"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Deployment, dict]:
    """A deployment that has the sample, and the report of that ingestion; look, do not touch."""
    made = Deployment(tmp_path_factory.mktemp("deployment"))
    return made, made.ingest("--dataset", "sample")


@pytest.fixture
def ask(sample_warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the shared sample, which it must not change."""
    return runner_on(sample_warehouse, monkeypatch)


@pytest.fixture
def change(warehouse_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a copy of the sample."""
    return runner_on(warehouse_copy, monkeypatch)
