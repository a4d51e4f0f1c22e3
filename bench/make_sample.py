"""Make the bundled sample dataset, `assets/traces/sample/`.

Four steps, each a subcommand:

- `workloads` writes the workload rows and the small tensor files they name, from the
  table in this file. The same table always gives the same bytes.
- `measure` runs FlashInfer-Bench over the sample's definitions, solutions and workloads
  on the GPU of this machine and writes what it emitted to a folder.
- `distribute` files those traces under their solutions' authors, in the sample.
- `summary` prints what the sample holds, as the tables of its README.

`workloads`, `distribute` and `summary` need Python alone; `measure` needs
`flashinfer-bench` 0.1.2, torch, triton and a CUDA device. Definitions and solutions are
documents of their own in the sample and are not made here.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import sysconfig
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flashinfer_bench import TraceSet

SAMPLE = Path(__file__).resolve().parents[1] / "assets" / "traces" / "sample"
WORKLOAD_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "sample.kernelindex.dev")
HEAD_DIM = 128
SAMPLE_LIMIT_BYTES = 1_500_000
HARNESS_VERSION = "0.1.2"

RMSNORM = "rmsnorm_h128"
FUSED_ADD_RMSNORM = "fused_add_rmsnorm_h7168"
GEMM = "gemm_n128_k2048"
RAGGED_PREFILL = "gqa_ragged_prefill_causal_h32_kv4_d128"
PAGED_DECODE = "gqa_paged_decode_h32_kv4_d128_ps1"

BATCH_SIZES = {
    RMSNORM: ("batch_size", (32, 192, 2528, 65016, 520128)),
    FUSED_ADD_RMSNORM: ("batch_size", (1, 32, 539, 14521)),
    GEMM: ("M", (1, 16, 172, 952, 14915)),
}
# Sequences and query tokens of one prefill batch; keys are as many as queries.
PREFILL_BATCHES = ((1, 34), (3, 172), (15, 969), (27, 12251))
# Sequences, pages in use and pages of the cache of one decoding step.
DECODE_BATCHES = ((1, 362, 412), (1, 4096, 9332), (16, 4284, 4334), (64, 4560, 9332))

MACHINE_QUERY = (
    "name,driver_version,vbios_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,"
    "power.draw,power.limit,temperature.gpu,pstate,ecc.mode.current,persistence_mode,"
    "clocks_throttle_reasons.active"
)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_json_lines(path: Path) -> Iterator[Any]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def definitions() -> dict[str, Any]:
    documents = (read_json(path) for path in sorted(SAMPLE.glob("definitions/*/*.json")))
    return {document["name"]: document for document in documents}


def solutions() -> dict[str, Any]:
    documents = (read_json(path) for path in sorted(SAMPLE.glob("solutions/*/*/*/*.json")))
    return {document["name"]: document for document in documents}


# --- workloads


@dataclass(frozen=True)
class Workload:
    """One workload of the sample: its axes, and the int32 inputs that must have a structure."""

    definition: str
    axes: dict[str, int]
    structured: dict[str, list[int]]

    @property
    def identity(self) -> str:
        return str(uuid.uuid5(WORKLOAD_NAMESPACE, json.dumps([self.definition, self.axes])))


def sequence_bounds(sequences: int, tokens: int) -> list[int]:
    """First token of each sequence, then the end: lengths differ by up to a factor of three."""
    weights = [4 + 7 * number % 9 for number in range(sequences)]
    ends = [0]
    for number in range(sequences):
        ends.append(tokens * sum(weights[: number + 1]) // sum(weights))
    return ends


def scattered_pages(in_use: int, pages: int) -> list[int]:
    """Distinct page ids that are not in order, as after some time of allocation."""
    step = next(step for step in range(pages * 5 // 8, pages) if math.gcd(step, pages) == 1)
    return [(3 + step * number) % pages for number in range(in_use)]


def planned_workloads() -> Iterator[Workload]:
    for definition, (axis, sizes) in BATCH_SIZES.items():
        for size in sizes:
            yield Workload(definition, {axis: size}, {})
    for sequences, tokens in PREFILL_BATCHES:
        bounds = sequence_bounds(sequences, tokens)
        axes = {"len_indptr": sequences + 1, "total_q": tokens, "total_kv": tokens}
        yield Workload(RAGGED_PREFILL, axes, {"qo_indptr": bounds, "kv_indptr": bounds})
    for sequences, in_use, pages in DECODE_BATCHES:
        axes = {
            "batch_size": sequences,
            "num_pages": pages,
            "len_indptr": sequences + 1,
            "num_kv_indices": in_use,
        }
        structured = {
            "kv_indptr": sequence_bounds(sequences, in_use),
            "kv_indices": scattered_pages(in_use, pages),
        }
        yield Workload(PAGED_DECODE, axes, structured)


def safetensors_bytes(tensors: dict[str, list[int]]) -> bytes:
    """The safetensors form of one-dimensional int32 tensors.

    Eight bytes of header length, a JSON header padded with spaces to a multiple of
    eight, then the data, all little-endian (https://huggingface.co/docs/safetensors).
    """
    header: dict[str, Any] = {}
    data = b""
    for name, values in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}i", *values)
        header[name] = {
            "dtype": "I32",
            "shape": [len(values)],
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def workload_row(workload: Workload, inputs: list[str], blob_path: str) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for name in inputs:
        if name in workload.structured:
            described[name] = {"type": "safetensors", "path": blob_path, "tensor_key": name}
        elif name == "sm_scale":
            described[name] = {"type": "scalar", "value": 1 / math.sqrt(HEAD_DIM)}
        else:
            described[name] = {"type": "random"}
    return {
        "definition": workload.definition,
        "solution": None,
        "workload": {"uuid": workload.identity, "axes": workload.axes, "inputs": described},
        "evaluation": None,
    }


def write_workloads() -> None:
    for folder in ("workloads", "blob"):
        shutil.rmtree(SAMPLE / folder, ignore_errors=True)
    known = definitions()
    for workload in planned_workloads():
        definition = known[workload.definition]
        place = f"{definition['op_type']}/{workload.definition}"
        blob_path = f"blob/workloads/{place}/{workload.definition}_{workload.identity}.safetensors"
        if workload.structured:
            blob = SAMPLE / blob_path
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(safetensors_bytes(workload.structured))
        rows = SAMPLE / "workloads" / f"{place}.jsonl"
        rows.parent.mkdir(parents=True, exist_ok=True)
        row = workload_row(workload, list(definition["inputs"]), f"./{blob_path}")
        with rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


# --- measure


def gpu_state() -> dict[str, str]:
    """What the driver says about the GPU now. Read only: nothing is set."""
    command = ["nvidia-smi", f"--query-gpu={MACHINE_QUERY}", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    values = [value.strip() for value in answer.stdout.split(",")]
    if answer.returncode or len(values) != len(MACHINE_QUERY.split(",")):
        return {"problem": (answer.stdout + answer.stderr).strip()}
    return dict(zip(MACHINE_QUERY.split(","), values, strict=True))


def machine_facts() -> dict[str, Any]:
    from importlib.metadata import version

    import flashinfer_bench
    import torch
    import triton

    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": torch.cuda.get_device_name(0),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        "flashinfer-bench": version("flashinfer-bench"),
        # `distribute` writes these names in place of the folders.
        "folders": [
            [os.environ["FIB_CACHE_PATH"], "<cache>"],
            [str(Path(flashinfer_bench.__file__).parents[1]), "<site-packages>"],
            [str(Path(torch.__file__).parents[1]), "<site-packages>"],
            [sysconfig.get_paths()["stdlib"], "<python>"],
            [str(SAMPLE.parents[2]), "<repository>"],
        ],
        "states": [],
    }


def measure(out: Path, deadline_s: float, only: list[str]) -> None:
    """Run every solution on every workload; write traces as soon as the harness has them.

    Leaves `traces.jsonl`, `machine.json` and `problems.log` in `out`. What goes wrong
    with one definition is logged there and the next one is run; nothing new is started
    after `deadline_s` seconds.
    """
    os.environ.setdefault("FIB_CACHE_PATH", str(out.resolve().parent / "flashinfer-bench-cache"))
    from flashinfer_bench import TraceSet

    out.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=out / "problems.log", level=logging.WARNING)
    begun = time.monotonic()
    facts = machine_facts()
    if facts["flashinfer-bench"] != HARNESS_VERSION:
        logging.warning("the sample is made with flashinfer-bench %s", HARNESS_VERSION)
    whole = TraceSet.from_path(str(SAMPLE))
    for name in only or whole.definitions:
        try:
            measure_definition(whole, name, out / "traces.jsonl", begun + deadline_s)
        except (RuntimeError, ValueError, OSError, EOFError):
            logging.exception("%s was not finished", name)
        facts["states"].append(gpu_state())
        facts["seconds"] = round(time.monotonic() - begun, 1)
        (out / "machine.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        print(f"{facts['seconds']:6.1f} s  {name}", flush=True)


def measure_definition(whole: TraceSet, name: str, traces: Path, deadline: float) -> None:
    """Measure one definition with a runner of its own.

    The runner keeps one worker process and remembers which solutions failed: it skips a
    solution after one failed build or three crashes. Both start anew here.
    """
    from flashinfer_bench import Benchmark, BenchmarkConfig, TraceSet

    part = TraceSet(
        root=SAMPLE,
        definitions={name: whole.definitions[name]},
        solutions={name: whole.solutions[name]},
    )
    benchmark = Benchmark(part, BenchmarkConfig(timeout_seconds=60))
    try:
        for row in whole.workloads[name]:
            if time.monotonic() > deadline:
                logging.warning("deadline: %s %s was not run", name, row.workload.uuid)
                continue
            part.workloads = {name: [row]}
            append_traces(traces, benchmark.run_all(dump_traces=False))
    finally:
        benchmark.close()


def append_traces(path: Path, measured: TraceSet) -> None:
    with path.open("a", encoding="utf-8") as file:
        for traces in measured.traces.values():
            file.writelines(trace.model_dump_json() + "\n" for trace in traces)


# --- distribute and summary


def distribute(measured: Path) -> None:
    """File the measured lines by author, operation and definition.

    A line stays as the harness wrote it, save that the folders of the machine it ran
    on are named by what they are.
    """
    folders = read_json(measured / "machine.json")["folders"]
    folders.sort(key=lambda pair: -len(pair[0]))
    operations, known = definitions(), solutions()
    filed: dict[Path, list[str]] = defaultdict(list)
    for line in (measured / "traces.jsonl").read_text(encoding="utf-8").splitlines():
        trace = json.loads(line)
        name = trace["definition"]
        author = known[trace["solution"]]["author"]
        for folder, meaning in folders:
            line = line.replace(folder, meaning)
        place = Path(author) / operations[name]["op_type"] / f"{name}.jsonl"
        filed[SAMPLE / "traces" / place].append(line)
    shutil.rmtree(SAMPLE / "traces", ignore_errors=True)
    for path, lines in filed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file())
    if size > SAMPLE_LIMIT_BYTES:
        sys.exit(f"the sample has {size} bytes; it must stay under {SAMPLE_LIMIT_BYTES}")


def was_run(trace: Any) -> bool:
    """Whether the harness ran the solution, and did not skip it after earlier failures."""
    return not trace["evaluation"]["log"].startswith("Solution skipped after")


def summary() -> None:
    traces = [
        trace
        for path in sorted(SAMPLE.glob("traces/*/*/*.jsonl"))
        for trace in read_json_lines(path)
    ]
    known = solutions()
    statuses = Counter(
        trace["evaluation"]["status"] + ("" if was_run(trace) else " (skipped by the harness)")
        for trace in traces
    )
    print("| status | traces |\n| --- | --- |")
    for status, count in sorted(statuses.items()):
        print(f"| {status} | {count} |")
    for name in definitions():
        rows = list(read_json_lines(next(SAMPLE.glob(f"workloads/*/{name}.jsonl"))))
        of_definition = [trace for trace in traces if trace["definition"] == name]
        print(f"\n### `{name}`: {len(of_definition)} traces\n")
        labels = [workload_label(row["workload"]["axes"]) for row in rows]
        print(f"| author | solution | {' | '.join(labels)} |")
        print(f"| --- | --- | {' | '.join('---:' for _ in rows)} |")
        for solution in sorted(
            (document for document in known.values() if document["definition"] == name),
            key=lambda document: (document["author"], document["name"]),
        ):
            cells = [
                cell(
                    [
                        trace
                        for trace in of_definition
                        if trace["solution"] == solution["name"]
                        and trace["workload"]["uuid"] == row["workload"]["uuid"]
                    ]
                )
                for row in rows
            ]
            print(f"| {solution['author']} | `{solution['name']}` | {' | '.join(cells)} |")


def workload_label(axes: dict[str, int]) -> str:
    if "total_q" in axes:
        return f"{axes['len_indptr'] - 1} seq., {axes['total_q']} tokens"
    if "num_kv_indices" in axes:
        return f"{axes['batch_size']} seq., {axes['num_kv_indices']} pages"
    return ", ".join(f"{name}={value}" for name, value in axes.items())


def cell(traces: list[Any]) -> str:
    """Latency in microseconds where the solution passed, else its status."""
    passed = [
        trace["evaluation"]["performance"]["latency_ms"] * 1000
        for trace in traces
        if trace["evaluation"]["status"] == "PASSED"
    ]
    if passed:
        return f"{statistics.median(passed):.1f}"
    if any(was_run(trace) for trace in traces):
        return ", ".join(sorted({trace["evaluation"]["status"] for trace in traces}))
    return "skipped" if traces else "not run"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("workloads", help="write workload rows and tensor files")
    measuring = commands.add_parser("measure", help="run FlashInfer-Bench on this machine's GPU")
    measuring.add_argument("--out", type=Path, required=True, help="folder for what was measured")
    measuring.add_argument("--deadline-s", type=float, default=math.inf)
    measuring.add_argument("--definition", action="append", default=[], help="only this one")
    distributing = commands.add_parser("distribute", help="file measured traces in the sample")
    distributing.add_argument("measured", type=Path, help="the folder that `measure` wrote")
    commands.add_parser("summary", help="print what the sample holds")
    arguments = parser.parse_args()
    if arguments.command == "workloads":
        write_workloads()
    elif arguments.command == "measure":
        measure(arguments.out, arguments.deadline_s, arguments.definition)
    elif arguments.command == "distribute":
        distribute(arguments.measured)
    else:
        summary()


if __name__ == "__main__":
    main()
