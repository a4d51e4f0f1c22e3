"""Make a warehouse to keep, with the code as it is now, by its commands alone.

    python -m tests.kept_warehouses.make version-1.tar.xz --torch-python PYTHON

Run once for each version of the table contracts, before the next one is begun. What is in it: the
bundled sample by author, the reruns that ship with it, a toy dataset with quarantined items, all of
that compacted and the replaced folders removed; then a second revision of the toy dataset, one
rerun on the CPU, a retraction, and the database of it all.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.builders import dataset, json_lines, solution, trace

ROOT = Path(__file__).resolve().parents[2]
# What a reader of another machine does not need: locks, half-built things, paths of this machine.
_LEFT_OUT = {"staging", ".writer.lock", "local-files.json", "as-of", "leases"}
IDENTITY = {"dataset.json": {"id": "kernelindex/toy", "url": "https://example.org/toy"}}
BAD = trace(evaluation__performance__latency_ms=-1.0)
Command = Callable[..., Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--torch-python", default=sys.executable, help="Python that has torch")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(commands_in(folder), folder, chosen.torch_python)
        pack(folder / "warehouse", chosen.archive)


def commands_in(folder: Path) -> Command:
    """Runs `kernelindex … --json` in a folder and returns what it answers."""
    environment = {
        **os.environ,
        "KERNELINDEX_WAREHOUSE": str(folder / "warehouse"),
        "DAGSTER_HOME": str(folder / "dagster"),
        "PYTHONPATH": str(ROOT),
    }

    def run(*arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", *arguments, "--json"],
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return json.loads(done.stdout.splitlines()[-1] if "ingest" in arguments else done.stdout)

    return run


def fill(run: Command, folder: Path, torch_python: str) -> None:
    """Everything that a warehouse can hold, once."""
    run("ingest", "--dataset", "sample", "--authors", "baseline")
    run("ingest", "--dataset", "sample")
    first_revision(folder / "toy")
    run("ingest", "--dataset", "toy")
    run("compact", "--keep-days", "0")
    second_revision(folder / "toy")
    run("ingest", "--dataset", "toy")
    measure_again(run, folder, torch_python)
    [slowest] = run(
        "query",
        "select run_digest from ranked_runs inner join runs using (run_digest) "
        "where source_native order by runs.primary_value desc, run_digest limit 1",
    )
    run(
        *("correct", "retract", slowest["run_digest"]),
        *("--author", "tests", "--reason", "to be kept as a retraction"),
        *("--evidence", "https://example.org/evidence"),
    )


def first_revision(folder: Path) -> None:
    """A toy dataset with a trace that has no latency and a line that is no JSON."""
    dataset(folder, IDENTITY, traces=json_lines([trace(), BAD]) + "{\n")


def second_revision(folder: Path) -> None:
    """Another content of the solution, and one more trace."""
    changed = solution(sources=[{"path": "main.py", "content": "def run(x, w): return x + w\n"}])
    faster = trace(evaluation__performance__latency_ms=0.01)
    dataset(folder, IDENTITY, solution=changed, traces=[trace(), faster, BAD])


def measure_again(run: Command, folder: Path, torch_python: str) -> None:
    """One rerun of a small kernel on the CPU."""
    [wanted] = run(
        "query",
        "select run_digest from runs where solution_name = 'rmsnorm_h128_torch_rms_norm' "
        "and source_native order by primary_value, run_digest limit 1",
    )
    run(
        *("rerun", "bundle", wanted["run_digest"], "--reason", "to be kept"),
        *("--out", "check", "--samples", "20"),
    )
    subprocess.run(
        [
            *(torch_python, "kernelindex_worker.pyz", "run", "bundle"),
            *("--out", "result", "--gpu", "cpu", "--lock-dir", str(folder / "locks")),
        ],
        cwd=folder / "check",
        check=True,
        stdout=subprocess.DEVNULL,
    )
    run("rerun", "import", "check", "--runner", "tests")


def pack(warehouse: Path, archive: Path) -> None:
    """Write the warehouse as one archive, of nobody and no machine."""
    with tarfile.open(archive, "w:xz", preset=9) as stream:
        for path in _kept(warehouse):
            stream.add(path, str(path.relative_to(warehouse)), False, filter=_of_nobody)


def _kept(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT or path.name.endswith(".lock"):
            continue
        if path.is_dir():
            yield from _kept(path)
        else:
            yield path


def _of_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info


def unpack(archive: Path, folder: Path) -> Path:
    """A kept warehouse in a folder of its own, to be used as people use one."""
    with tarfile.open(archive) as stream:
        for info in stream:
            source = stream.extractfile(info)
            assert source is not None
            path = folder / info.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as target:
                shutil.copyfileobj(source, target)
    return folder


if __name__ == "__main__":
    main()
