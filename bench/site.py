"""How fast the static site is written: a first build, and one in which nothing changed.

    python bench/site.py [--runs 10000] [--dataset DIRECTORY] [--without-logs]

Multiplies a dataset (the bundled sample, or any directory) until it has that many distinct runs,
ingests it into a temporary warehouse, and builds its site twice, each time in a process of its
own. A plain copy of the built folder is timed beside them, so that a figure does not depend on
the machine alone.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.ingest import multiply  # noqa: E402  # the folder is no installed package


def kernelindex(home: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "KERNELINDEX_WAREHOUSE": str(home / "warehouse"),
        "DAGSTER_HOME": str(home / "dagster"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "pipelines.cli", *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def build(home: Path) -> dict:
    code = (
        "import json, resource, sys, time; began = time.perf_counter()\n"
        "from pathlib import Path\n"
        "from assets.leaderboards.site.build import build_site\n"
        "from assets.tables.warehouse import Warehouse\n"
        "outcome = build_site(Warehouse(Path(sys.argv[1])))\n"
        "print(json.dumps({'seconds': time.perf_counter() - began,\n"
        "    'peak_mib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,\n"
        "    'written': outcome.files.written, 'unchanged': outcome.files.unchanged,\n"
        "    'pages': outcome.pages, 'mib': outcome.files.size_bytes / 2**20}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home / "warehouse")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--dataset", type=Path, default=ROOT / "assets/traces/sample")
    parser.add_argument("--without-logs", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelindex-bench-") as folder:
        home = Path(folder)
        multiply(options.dataset, home / "dataset", options.runs, not options.without_logs)
        kernelindex(home, "ingest", "--json", "--dataset", str(home / "dataset"))
        print(f"{options.runs} traces, {os.cpu_count()} processors")
        for name in ("first build", "nothing changed"):
            result = build(home)
            print(
                f"{name:16} {result['seconds']:6.1f} s  peak {result['peak_mib']:5.0f} MiB  "
                f"{result['written']} written, {result['unchanged']} unchanged, "
                f"{result['mib']:.0f} MiB  {result['pages']}"
            )
        began = time.perf_counter()
        shutil.copytree(home / "warehouse" / "site", home / "copy")
        print(f"{'copy of the site':16} {time.perf_counter() - began:6.1f} s")


if __name__ == "__main__":
    main()
