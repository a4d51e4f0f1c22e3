"""Try the rerun worker on a real GPU: are cheats caught, and do runs agree?

Needs python3 with torch, nothing else of the project's dependencies:

    python3 bench/rerun_worker.py dishonest --gpu 0
    python3 bench/rerun_worker.py spread --gpu 0 --dataset DIR [--dataset DIR] --out OUT
    python3 bench/rerun_worker.py together --gpu 0 --gpu-beside 1 --dataset DIR --out OUT

`dishonest` measures every case of tests/reruns/dishonest and compares verdicts with what they
must be. `spread` takes solutions of datasets in FlashInfer-Bench layout, measures the same bundle
in separate worker runs, and prints each median with its spread. `together` measures it on each of
two GPUs alone and then on both at once. All write what they found to --out: the result bundles as
one archive, and a summary as JSON.
"""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "reruns")]

from dishonest.cases import load_cases  # noqa: E402

from assets.reruns.job_bundles import BundleItem, write_bundle  # noqa: E402
from assets.reruns.worker.build import build_worker  # noqa: E402
from assets.reruns.worker.job import JobBundle, Limits, Protocol  # noqa: E402

FAMILIES = ("rmsnorm", "gemm")
LANGUAGES = ("python", "triton", "cuda")
WORKLOADS = ("reported", "largest", "middle", "smallest")


@dataclass(frozen=True)
class Pick:
    """A real solution, the workload it is measured on, and what was reported for it."""

    item: BundleItem
    label: str
    reported_ns: dict[str, int]


def main() -> int:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("what", choices=tuple(WAYS))
    chosen = parser.parse_args()
    return WAYS[chosen.what](chosen, out_folder(chosen))


def options(description: str) -> argparse.ArgumentParser:
    """What says which solutions are measured, where and how."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gpu", default="0", help="GPU index, or cpu")
    parser.add_argument("--gpu-beside", default="1", help="the other GPU, for `together`")
    parser.add_argument("--out", type=Path, help="folder for the archive and the summary")
    parser.add_argument("--dataset", type=Path, action="append", default=[])
    parser.add_argument("--solution", action="append", default=[], help="only these names")
    parser.add_argument("--max-solutions", type=int, default=24)
    parser.add_argument("--per-author-and-definition", type=int, default=1)
    parser.add_argument("--workload", choices=WORKLOADS, default="reported")
    parser.add_argument("--max-input-bytes", type=int, default=512 << 20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=Protocol().samples)
    parser.add_argument("--rounds", type=int, default=Protocol().rounds)
    parser.add_argument(
        "--worker-argument", action="append", default=[], help="passed on to the worker, as =--NAME"
    )
    parser.add_argument("--deadline-s", type=float, default=540.0, help="of one worker run")
    return parser


def out_folder(chosen: argparse.Namespace) -> Path:
    out: Path = chosen.out or Path(tempfile.mkdtemp(prefix="kernelindex-bench-"))
    out.mkdir(parents=True, exist_ok=True)
    return out


def try_cases(chosen: argparse.Namespace, out: Path) -> int:
    cases = {case.name: case for case in load_cases("cpu" if chosen.gpu == "cpu" else "cuda")}
    cases = {
        name: case for name, case in cases.items() if not chosen.solution or name in chosen.solution
    }
    items = [BundleItem(c.name, c.definition, c.workload, c.solution) for c in cases.values()]
    protocol = Protocol(samples=60, wall_samples=20, rounds=4, warmup_s=0.1)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        limits = Limits(deadline_s=chosen.deadline_s, per_run_timeout_s=150.0)
        bundle = write_bundle(work / "job", items, reason="bench", protocol=protocol, limits=limits)
        result, seconds = run_worker(bundle, work / "result", chosen, chosen.gpu, work)
        archive(out / "dishonest-results.tar.gz", [work / "result"])
    wrong = 0
    for item in result["items"]:
        codes = [entry["code"] for entry in item["reasons"]]
        problem = cases[item["item_id"]].judge(item["status"], codes)
        wrong += problem is not None
        mark = "ok  " if problem is None else "BAD "
        print(mark, f"{item['item_id']:32}", item["status"], ",".join(codes), problem or "")
        if problem is not None:
            for entry in item["reasons"]:
                print("      ", entry["text"][:600])
    print(f"{len(result['items'])} cases, {wrong} wrong, state {result['state']}, {seconds:.0f} s")
    print_machine(result)
    save(out / "dishonest-summary.json", {"wrong": wrong, "seconds": seconds, "result": result})
    return 1 if wrong else 0


def measure_spread(chosen: argparse.Namespace, out: Path) -> int:
    picks = {pick.item.item_id: pick for pick in choose(chosen)}
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        bundle = bundle_of(picks, chosen, work)
        places = []
        for number in range(chosen.runs):
            place = work / f"result-{number}"
            result, seconds = run_worker(bundle, place, chosen, chosen.gpu, work)
            results.append(result)
            places.append(place)
            statuses = dict(Counter(item["status"] for item in result["items"]))
            print(f"run {number}: {statuses}, state {result['state']}, {seconds:.0f} s", flush=True)
            print_machine(result)
            archive(out / "spread-results.tar.gz", [bundle.root, *places])
            save(out / "spread-summary.json", {"results": results})
    rows = [row(pick, results) for pick in picks.values()]
    for line in sorted(rows, key=lambda line: str(line["label"])):
        print(
            f"{line['label']:74} {'/'.join(line['statuses']):20}",
            " ".join(f"{value / 1000:9.2f}" for value in line["medians_ns"]), "us",
            f"spread {line['spread']:.2%}" if line["spread"] is not None else "-",
            f"x{line['speedup']:.2f}" if line["speedup"] else "",
            f"floor {line['floor_ns'] / 1000:.2f} us" if line["floor_ns"] else "",
            f"reported {line['reported_ns']}" if line["reported_ns"] else "",
            ",".join(line["reasons"]),
        )  # fmt: skip
    slow = [
        line for line in rows if line["spread"] is not None and min(line["medians_ns"]) > 20_000
    ]
    steady = sum(line["spread"] <= 0.01 for line in slow)
    print(f"{steady} of {len(slow)} solutions over 20 us have medians within 1% over all runs")
    save(out / "spread-summary.json", {"rows": rows, "results": results})
    return 0


def measure_together(chosen: argparse.Namespace, out: Path) -> int:
    picks = {pick.item.item_id: pick for pick in choose(chosen)}
    gpus = (chosen.gpu, chosen.gpu_beside)
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        bundle = bundle_of(picks, chosen, work)

        def measure(when: str, gpu: str) -> None:
            place = work / f"{when}-{gpu}"
            result, seconds = run_worker(bundle, place, chosen, gpu, work)
            results[place.name] = result
            print(f"{place.name}: state {result['state']}, {seconds:.0f} s", flush=True)
            print_machine(result)
            archive(out / f"{place.name}.tar.gz", [place])

        for gpu in gpus:
            measure("alone", gpu)
        with ThreadPoolExecutor(len(gpus)) as pool:
            for done in [pool.submit(measure, "together", gpu) for gpu in gpus]:
                done.result()
    rows = [
        row(pick, [results[f"alone-{gpu}"], results[f"together-{gpu}"]]) | {"gpu": gpu}
        for pick in picks.values()
        for gpu in gpus
    ]
    for line in rows:
        alone, together = (*line["medians_ns"], None, None)[:2]
        print(
            f"{line['label']:74} GPU {line['gpu']} {'/'.join(line['statuses']):8}",
            f"alone {alone / 1000:9.2f} us, together {together / 1000:9.2f} us,"
            f" {together / alone - 1:+.2%}" if alone and together else ",".join(line["reasons"]),
        )  # fmt: skip
    save(out / "together-summary.json", {"rows": rows, "results": results})
    return 0


def bundle_of(picks: dict[str, Pick], chosen: argparse.Namespace, work: Path) -> JobBundle:
    return write_bundle(
        work / "job",
        [pick.item for pick in picks.values()],
        reason="bench",
        protocol=Protocol(samples=chosen.samples, rounds=chosen.rounds),
        limits=Limits(deadline_s=chosen.deadline_s, per_run_timeout_s=240.0),
    )


def choose(chosen: argparse.Namespace) -> list[Pick]:
    """Solutions whose definition has a workload without tensor files, spread over authors."""
    picks: list[Pick] = []
    taken: Counter[tuple[str, str, str]] = Counter()
    for dataset in chosen.dataset:
        definitions = {
            str(document["name"]): document for document in documents(dataset / "definitions")
        }
        rows = workload_rows(dataset)
        reported = reported_times(dataset)
        for solution in documents(dataset / "solutions"):
            name, spec = str(solution["name"]), solution["spec"]
            definition = definitions.get(solution["definition"])
            if definition is None or str(spec["language"]).lower() not in LANGUAGES:
                continue
            if chosen.solution and name not in chosen.solution:
                continue
            if not chosen.solution and definition.get("op_type", "").split("_")[0] not in FAMILIES:
                continue
            own = {uuid for reporting, uuid in reported if reporting == name}
            workload = fitting(rows.get(definition["name"], []), definition, chosen, own)
            key = (str(solution["author"]), str(definition["name"]), str(spec["language"]))
            if workload is None or taken[key] >= chosen.per_author_and_definition:
                continue
            taken[key] += 1
            label = f"{solution['author']}/{name}/{definition['name']}"
            item = BundleItem(f"item-{len(picks)}", definition, workload, solution)
            times = reported.get((name, str(workload["workload"].get("uuid"))), {})
            picks.append(Pick(item, label, times))
    if not picks:
        raise SystemExit("no solution of these datasets can be measured without tensor files")
    return evenly(picks, chosen.max_solutions)


def evenly(picks: list[Pick], limit: int) -> list[Pick]:
    """At most `limit` picks, taken in turn from every author."""
    by_author: dict[str, list[Pick]] = {}
    for pick in sorted(picks, key=lambda pick: not pick.reported_ns):  # reported ones first
        by_author.setdefault(pick.label.split("/")[0], []).append(pick)
    found: list[Pick] = []
    while len(found) < limit and any(by_author.values()):
        for waiting in by_author.values():
            if waiting and len(found) < limit:
                found.append(waiting.pop(0))
    return found


def documents(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.json"))]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def workload_rows(dataset: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for document in lines(dataset / "workloads"):
        kinds = {entry["type"] for entry in document["workload"]["inputs"].values()}
        if "safetensors" not in kinds:
            found.setdefault(document["definition"], []).append(document)
    return found


def reported_times(dataset: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Published latency in ns by GPU, for each solution and workload."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for trace in lines(dataset / "traces"):
        evaluation = trace.get("evaluation") or {}
        performance = evaluation.get("performance")
        if performance and trace.get("solution"):
            key = (trace["solution"], str(trace["workload"].get("uuid")))
            hardware = evaluation["environment"].get("hardware", "?")
            found.setdefault(key, {})[hardware] = round(performance["latency_ms"] * 1e6)
    return found


def fitting(
    rows: list[dict[str, Any]],
    definition: dict[str, Any],
    chosen: argparse.Namespace,
    reported: set[str],
) -> dict[str, Any] | None:
    """The workload to measure on; `reported` are those with a published time for the solution."""
    sized = sorted((input_bytes(definition, row), number) for number, row in enumerate(rows))
    sized = [entry for entry in sized if entry[0] <= chosen.max_input_bytes]
    if not sized:
        return None
    known = [entry for entry in sized if str(rows[entry[1]]["workload"].get("uuid")) in reported]
    if chosen.workload == "reported" and known:
        return rows[known[-1][1]]
    place = {"largest": -1, "smallest": 0}.get(chosen.workload, len(sized) // 2)
    return rows[sized[place][1]]


def input_bytes(definition: dict[str, Any], row: dict[str, Any]) -> int:
    axes = {name: axis.get("value") for name, axis in definition["axes"].items()}
    axes.update(row["workload"]["axes"])
    total = 0
    for spec in definition["inputs"].values():
        count = 2
        for extent in spec["shape"] or ():
            count *= int(axes.get(extent) or 1) if isinstance(extent, str) else extent
        total += count
    return total


def run_worker(
    bundle: JobBundle, place: Path, chosen: argparse.Namespace, gpu: str, work: Path
) -> tuple[dict[str, Any], float]:
    command = worker_command(bundle, place, chosen, gpu, work)
    started = time.monotonic()
    code = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    seconds = time.monotonic() - started
    if not (place / "result.json").is_file():
        raise SystemExit(f"the worker wrote no result and ended with exit code {code}")
    return json.loads((place / "result.json").read_text(encoding="utf-8")), seconds


def worker_command(
    bundle: JobBundle, place: Path, chosen: argparse.Namespace, gpu: str, work: Path
) -> list[str]:
    worker = build_worker(work / f"{place.name}.pyz")
    return [
        sys.executable, str(worker), "run", str(bundle.root), "--out", str(place),
        "--gpu", gpu, "--build-cache", str(work / "builds"), *chosen.worker_argument,
    ]  # fmt: skip


def row(pick: Pick, results: list[dict[str, Any]]) -> dict[str, Any]:
    """One solution over all runs. `spread` is the largest median over the smallest, less one."""
    items = [
        item for result in results for item in result["items"]
        if item["item_id"] == pick.item.item_id
    ]  # fmt: skip
    medians = [item["statistics"]["median"] for item in items if item["statistics"]]
    convention = items[0]["call_convention"] or {}
    return {
        "label": pick.label,
        "statuses": sorted({item["status"] for item in items}),
        "reasons": sorted({entry["code"] for item in items for entry in item["reasons"]}),
        "texts": sorted({entry["text"] for item in items for entry in item["reasons"]}),
        "medians_ns": medians,
        "intervals_ns": [i["statistics"]["confidence95"] for i in items if i["statistics"]],
        "spread": max(medians) / min(medians) - 1 if len(medians) > 1 else None,
        "speedup": items[-1]["speedup"],
        "floor_ns": (items[-1]["roofline"] or {}).get("floor_ns"),
        "convention": f"{convention.get('style')} by {convention.get('decided_by')}",
        "reported_ns": pick.reported_ns,
    }


def print_machine(result: dict[str, Any]) -> None:
    calibration = result["calibration"]
    print("device", result["device"].get("name"), "clean", calibration["clean"],
          "before", calibration["before"], "after", calibration["after"])  # fmt: skip
    for entry in calibration["reasons"]:
        print("   calibration:", entry["code"], entry["text"])


def archive(target: Path, folders: list[Path]) -> None:
    with tarfile.open(target, "w:gz") as stream:
        for folder in folders:
            if folder.exists():
                stream.add(folder, arcname=folder.name)


def save(target: Path, document: dict[str, Any]) -> None:
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


WAYS = {
    "dishonest": try_cases,
    "spread": measure_spread,
    "together": measure_together,
}

if __name__ == "__main__":
    sys.exit(main())
