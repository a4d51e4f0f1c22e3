"""Bundles, jobs and settings for the launchers' tests, and what a right end looks like."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.reruns.launchers.drive import WorkerEvent
from assets.reruns.launchers.job import RerunJob
from assets.reruns.launchers.job_directory import JobDirectory
from assets.reruns.launchers.launcher import Launcher
from assets.reruns.launchers.settings import StopPolicy
from assets.reruns.launchers.supervisor import processes

WORKER = Path(__file__).parents[1] / "stand_in_worker.py"
QUICK_STOP = StopPolicy(deadline_slack_s=0.2, interrupt_grace_s=0.3, terminate_grace_s=0.3)


def bundle(folder: Path, *, sleep_s: float = 0.1, items: int = 1, **stand_in: Any) -> Path:
    """A bundle whose items sleep; `stand_in` says how the worker misbehaves."""
    directory = folder / f"bundle-{uuid.uuid4().hex[:12]}"
    directory.mkdir(parents=True)
    content = {
        "bundle_id": f"sha256:{uuid.uuid4().hex}",
        "nonce": uuid.uuid4().hex,
        "limits": {"deadline_s": 60},
        "items": [{"id": f"item-{number}", "sleep_s": sleep_s} for number in range(items)],
        "stand_in": stand_in,
    }
    (directory / "bundle.json").write_text(json.dumps(content))
    (directory / "solutions").mkdir()
    (directory / "solutions" / "kernel.py").write_text("def run(x):\n    return x\n")
    return directory


def job(
    folder: Path, job_id: str | None = None, *, deadline_s: float = 30.0, **wishes: Any
) -> RerunJob:
    return RerunJob(
        job_id=job_id or f"job-{uuid.uuid4().hex[:12]}",
        bundle_dir=bundle(folder, **wishes),
        deadline_s=deadline_s,
    )


def directory_of(launcher: Launcher, one: RerunJob) -> JobDirectory:
    return JobDirectory(launcher.jobs_root / one.job_id)


def never() -> bool:
    return False


def ignore(event: WorkerEvent) -> None:
    del event


def wait_until(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_at, "what was waited for did not happen"
        time.sleep(0.01)


def result_of(directory: Path) -> dict[str, Any]:
    """The content of a result bundle, checked to be whole."""
    content: dict[str, Any] = json.loads((directory / "result.json").read_text())
    samples = (directory / "samples.bin").read_bytes()
    assert hashlib.sha256(samples).hexdigest() == content["samples_sha256"]
    return content


def processes_of(directory: JobDirectory) -> list[int]:
    return processes.marked(directory.path)


@dataclass(frozen=True)
class Ledger:
    """What workers did, written by themselves where no launcher looks."""

    path: Path

    def count(self, what: str) -> int:
        if not self.path.exists():
            return 0
        return sum(line.startswith(what) for line in self.path.read_text().splitlines())
