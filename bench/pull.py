"""How fast 10,000 small files are pulled, beside `huggingface_hub.snapshot_download`.

Both pull the same dataset from the same loopback server (its own process) with eight threads,
each in a fresh process, in turns; the best and the median of the rounds are shown. Run it from
the repository's root:

    python -m bench.pull [--files 10000] [--rounds 3] [--peer-python PATH]

`--peer-python` is a Python that has `huggingface_hub`, in a virtual environment of its own so that
the project does not depend on it: `python -m venv peer && peer/bin/pip install huggingface_hub`.
Without it that half is left out. Peak memory is the process's largest resident set.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.traces.hub_server import DATASET

OURS = """
import resource, sys, time
from pathlib import Path
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore
def once():
    start = time.perf_counter()
    store = RawStore(Path(sys.argv[1]))
    snapshot = pull("hf://datasets/DATASET", revision=None, authors=None, store=store)
    return len(snapshot.files), time.perf_counter() - start
count, cold = once()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_, again = once()
print(count, cold, again, peak)
"""

PEER = """
import os, resource, sys, time
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HOME"] = sys.argv[1]
from pathlib import Path
from huggingface_hub import snapshot_download
def once():
    start = time.perf_counter()
    folder = snapshot_download("DATASET", repo_type="dataset", cache_dir=sys.argv[1], max_workers=8)
    return folder, time.perf_counter() - start
folder, cold = once()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_, again = once()
print(sum(path.is_file() for path in Path(folder).rglob("*")), cold, again, peak)
"""


@dataclass(frozen=True)
class Round:
    files: int
    cold_s: float
    again_s: float
    peak_kib: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--size-bytes", type=int, default=2000)
    parser.add_argument("--delay-s", type=float, default=0.0, help="what each answer waits")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", type=Path)
    options = parser.parse_args()
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.traces.hub_server"),
            *("--files", str(options.files)),
            *("--size-bytes", str(options.size_bytes)),
            *("--delay-s", str(options.delay_s)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        hub = json.loads(server.stdout.readline())
        programs = {"kernelindex": (Path(sys.executable), OURS)}
        if options.peer_python is not None:
            programs["huggingface_hub"] = (options.peer_python.absolute(), PEER)
        rounds: dict[str, list[Round]] = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, (python, program) in programs.items():
                rounds[name].append(measure(python, program, hub["endpoint"], options.files))
    finally:
        server.terminate()
        server.wait()
    print(f"{options.files} files of {options.size_bytes} bytes, {options.rounds} rounds")
    for name, measured in rounds.items():
        report(name, measured)
    if options.peer_python is None:
        print("huggingface_hub: left out (no --peer-python)")


def measure(python: Path, program: str, endpoint: str, files: int) -> Round:
    with tempfile.TemporaryDirectory() as folder:
        output = subprocess.run(
            [str(python), "-c", program.replace("DATASET", DATASET), folder],
            env={"PATH": os.environ["PATH"], "HF_ENDPOINT": endpoint},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.split()
    measured = Round(int(output[0]), float(output[1]), float(output[2]), int(output[3]))
    if measured.files != files:
        raise SystemExit(f"{measured.files} files were pulled in place of {files}")
    return measured


def report(name: str, rounds: list[Round]) -> None:
    cold_s = statistics.median(r.cold_s for r in rounds)
    best_s = min(r.cold_s for r in rounds)
    again_s = statistics.median(r.again_s for r in rounds)
    peak_mib = statistics.median(r.peak_kib for r in rounds) / 1024
    files = rounds[0].files
    print(
        f"{name:16} {files / cold_s:6.0f} files/s (median; best {files / best_s:.0f}), "
        f"first pull {cold_s:.2f} s, again {again_s:.2f} s, peak {peak_mib:.0f} MiB"
    )


if __name__ == "__main__":
    main()
