"""Terminating the Dagster run that measures ends the worker and everything that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from assets.reruns.lane import jobs
from assets.tables.warehouse import Warehouse
from tests.reruns.index import a_run, copy_of, use_local

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from collections.abc import Callable
from pathlib import Path
import dagster as dg
from pipelines.definitions import build_definitions
from pipelines.jobs import CONTROLLED_RERUN
from pipelines.settings import Settings

warehouse, digest = Path(sys.argv[1]), sys.argv[2]
definitions = build_definitions(Settings(warehouse, warehouse / "home", "sample"))
config = {
    "reason": "a test", "selection": {"runs": {"runs": [digest]}}, "gpu": "cpu",
    "samples": 100000, "deadline_s": 300.0,
}
definitions.resolve_job_def(CONTROLLED_RERUN).execute_in_process(
    run_config={"ops": {"rerun_requests": {"config": config}}},
    instance=dg.DagsterInstance.ephemeral(),
)
"""


def test_an_interrupted_run_leaves_no_process(
    sample_index: Warehouse, torch_python: str, tmp_path: Path
) -> None:
    own = copy_of(sample_index, tmp_path / "warehouse")
    digest = a_run(own, "rmsnorm_h128_torch_rms_norm")
    log = tmp_path / "log.txt"
    use_local(own, torch_python)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("KERNELINDEX_LAUNCHERS", None)
    with log.open("w") as stream:
        run = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(own.root), digest],
            cwd=ROOT, env=environment, stdout=stream, stderr=stream,
        )  # fmt: skip
        try:
            wait_for(lambda: "item_started" in log.read_text(), 90)
            assert processes_below(own.root)
            run.send_signal(signal.SIGINT)
            run.wait(timeout=60)
        finally:
            run.kill()
            run.wait()
    wait_for(lambda: not processes_below(own.root), 20)
    [line] = jobs(own)
    assert line.state == "cancelled", log.read_text()[-2000:]
    assert not line.imported


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.2)


def processes_below(folder: Path) -> list[int]:
    """Processes, other than this one's child itself, that work below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            place = str((entry / "cwd").readlink())
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if place.startswith(str(folder)) or (
            str(folder).encode() in command and b"-c" not in command
        ):
            found.append(int(entry.name))
    return found
