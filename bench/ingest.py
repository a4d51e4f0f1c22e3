"""How fast a dataset is ingested, beside one plain `json.loads` pass over the same files.

    python bench/ingest.py [--traces 50000] [--dataset DIRECTORY] [--without-logs]

Multiplies a dataset (the bundled sample, or any directory) until it has that many distinct
traces, then measures, each in a process of its own: a `json.loads` pass over the trace files;
pull, normalize and publish into an empty warehouse; and the same again into the full one. Prints
traces a second, peak memory and ratios, so that a figure does not depend on the machine alone;
"after pulling" is the way from raw bytes to published Parquet.
"""

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINES_A_FILE = 2000


def multiply(source: Path, target: Path, traces: int, keep_logs: bool) -> int:
    """Write a copy of a dataset in which every trace occurs many times, at different instants."""
    for folder in ("definitions", "solutions"):
        for path in (source / folder).rglob("*.json"):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    lines = [
        (path.relative_to(source), json.loads(line))
        for path in sorted((source / "traces").rglob("*.jsonl"))
        for line in path.read_bytes().splitlines()
        if line.strip()
    ]
    written = 0
    by_file: dict[Path, list[str]] = {}
    for copy in range(-(-traces // len(lines))):
        for path, trace in lines:
            if written == traces:
                break
            by_file.setdefault(path, []).append(json.dumps(shifted(trace, copy, keep_logs)))
            written += 1
            if len(by_file[path]) == LINES_A_FILE:
                flush(target, path, by_file.pop(path), copy)
    for path, rest in by_file.items():
        flush(target, path, rest, -1)
    return written


def shifted(trace: dict, copy: int, keep_logs: bool) -> dict:
    evaluation = trace.get("evaluation")
    if not evaluation:
        return trace
    at = datetime.fromisoformat(evaluation["timestamp"].removesuffix("Z")) + timedelta(seconds=copy)
    changed = {**evaluation, "timestamp": at.isoformat()}
    if not keep_logs:
        changed["log"] = ""
    elif evaluation.get("log"):
        changed["log"] = f"{evaluation['log']}\n[{copy}]"
    return {**trace, "evaluation": changed}


def flush(target: Path, path: Path, lines: list[str], number: int) -> None:
    name = f"{path.stem}.{number}.jsonl" if number >= 0 else path.name
    copy = target / path.with_name(name)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text("\n".join(lines) + "\n")


def trace_lines(dataset: Path) -> Iterator[bytes]:
    for path in sorted((dataset / "traces").rglob("*.jsonl")):
        with path.open("rb") as stream:
            yield from stream


def load_all(dataset: Path) -> None:
    start = time.perf_counter()
    count = 0
    for line in trace_lines(dataset):
        json.loads(line)
        count += 1
    report(count, time.perf_counter() - start)


def ingest(dataset: Path, warehouse_root: Path) -> None:
    sys.path.insert(0, str(ROOT))
    from assets.manifests.normalize import normalize
    from assets.manifests.staging import load_normalized, save_normalized
    from assets.tables.publication import PublicationRequest, publish
    from assets.tables.settled import settle
    from assets.traces.pull import pull
    from pipelines.resources import OpenWarehouse

    gc.freeze()  # as the command line does
    imported = time.perf_counter()
    warehouse = OpenWarehouse(warehouse_root)
    warehouse.prepare()
    snapshot = pull(str(dataset), revision=None, authors=None, store=warehouse.store)
    pulled = time.perf_counter()
    staging = warehouse.staging("bench")
    outcome = normalize(snapshot, warehouse.store, staging / "rows", warehouse.known(snapshot))
    normalized = time.perf_counter()
    request = PublicationRequest(kind="ingest", dataset=snapshot.dataset)
    publish(warehouse, staging / "rows", request)
    save_normalized(outcome, staging)
    settle(warehouse, load_normalized(staging))
    end = time.perf_counter()
    subprocess.run(["rm", "-rf", str(staging)], check=True)
    report(
        outcome.counts.read["trace"],
        end - imported,
        pull_s=pulled - imported,
        normalize_s=normalized - pulled,
        publish_s=end - normalized,
    )


def report(traces: int, seconds: float, **parts: float) -> None:
    peak_kib = max(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
    )
    print(json.dumps({"traces": traces, "seconds": seconds, "peak_mib": peak_kib / 1024, **parts}))


def measure(*arguments: str) -> dict:
    output = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return json.loads(output.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=50_000)
    parser.add_argument("--dataset", type=Path, default=ROOT / "assets/traces/sample")
    parser.add_argument("--without-logs", action="store_true")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, *paths = options.step
        {"load": load_all, "ingest": ingest}[step](*map(Path, paths))
        return
    with tempfile.TemporaryDirectory(prefix="kernelindex-bench-") as folder:
        dataset, warehouse = Path(folder) / "dataset", Path(folder) / "warehouse"
        multiply(options.dataset, dataset, options.traces, not options.without_logs)
        os.sync()  # else pulling waits until the disk has what was just made up
        size_bytes = sum(path.stat().st_size for path in dataset.rglob("*.jsonl"))
        print(
            f"{options.traces} traces, {size_bytes / 1e6:.0f} MB, "
            f"logs {'left out' if options.without_logs else 'kept'}, {os.cpu_count()} processors"
        )
        base = measure("--step", "load", str(dataset))
        first = measure("--step", "ingest", str(dataset), str(warehouse))
        again = measure("--step", "ingest", str(dataset), str(warehouse))
        after_pull = {
            "traces": first["traces"],
            "seconds": first["seconds"] - first["pull_s"],
            "peak_mib": first["peak_mib"],
        }
        for name, result in (
            ("json.loads", base),
            ("ingest", first),
            ("after pulling", after_pull),
            ("ingest again", again),
        ):
            rate = result["traces"] / result["seconds"]
            ratio = rate / (base["traces"] / base["seconds"])
            parts = "  ".join(
                f"{key.removesuffix('_s')} {value:.2f} s"
                for key, value in result.items()
                if key.endswith("_s")
            )
            print(
                f"{name:13} {result['seconds']:7.2f} s  {rate:9.0f} traces/s  "
                f"ratio {ratio:5.2f}  peak {result['peak_mib']:5.0f} MiB  {parts}"
            )
        print(f"again / first: {again['seconds'] / first['seconds']:.3f}")


if __name__ == "__main__":
    main()
