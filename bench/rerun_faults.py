"""End sessions of the rerun worker by force on a real GPU: how long is the GPU held after that?

    python3 bench/rerun_faults.py --gpu 0 --dataset DIR --out OUT

Needs python3 with torch, nothing else of the project's dependencies. Sessions of solutions chosen
as in `rerun_worker.py` are ended at random moments, --runs times each: the worker is killed, a
process of its that runs torch is killed, the worker is asked to stop. Prints how many seconds
later the GPU's memory and its lock were free again, and writes that to --out as JSON.
"""

import argparse
import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rerun_worker import bundle_of, choose, options, out_folder, save, worker_command

from assets.reruns.worker.job import JobBundle

FAULTS = ("kill the worker", "kill a process on the GPU", "ask the worker to stop")
#: How long the GPU may be held after a fault, and memory in MiB that is nobody's of ours.
RELEASE_S = 60
SLACK_MIB = 64


def main() -> int:
    chosen = options(__doc__.splitlines()[0]).parse_args()
    return measure_faults(chosen, out_folder(chosen))


def measure_faults(chosen: argparse.Namespace, out: Path) -> int:
    picks = {pick.item.item_id: pick for pick in choose(chosen)}
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        bundle = bundle_of(picks, chosen, work)
        for number in range(chosen.runs * len(FAULTS)):
            fault = FAULTS[number % len(FAULTS)]
            place = work / f"fault-{number}"
            found.append(end_by_force(fault, bundle, place, chosen, work))
            print(found[-1], flush=True)
            save(out / "faults-summary.json", {"faults": found})
    held = [entry for entry in found if entry["released_after_s"] is None]
    late = [entry for entry in found if not entry["in_time"]]
    print(f"{len(found)} faults, {len(held)} left the GPU or its lock held after {RELEASE_S} s")
    if late:
        print(f"{len(late)} came after the session's end and show nothing: give it more to measure")
    return 1 if held or late else 0


def end_by_force(
    fault: str, bundle: JobBundle, place: Path, chosen: argparse.Namespace, work: Path
) -> dict[str, Any]:
    """Start a session, end it at a random moment, and wait until the GPU is free."""
    locks = work / "locks"
    before_mib = used_mib(chosen.gpu)
    with (work / f"{place.name}.log").open("wb") as log:
        worker = subprocess.Popen(
            [*worker_command(bundle, place, chosen, chosen.gpu, work), "--lock-dir", str(locks)],
            stdout=log, stderr=log,
        )  # fmt: skip
    time.sleep(random.uniform(5, 25))
    ran_on = worker.poll() is None
    if fault == "kill a process on the GPU":
        for process in random.sample(children := gpu_processes(worker.pid), min(1, len(children))):
            os.kill(process, signal.SIGKILL)
    else:
        worker.send_signal(signal.SIGKILL if fault == "kill the worker" else signal.SIGTERM)
    ended = time.monotonic()
    worker.wait(chosen.deadline_s)
    answered_s = time.monotonic() - ended
    if fault == "kill a process on the GPU":
        ended = time.monotonic()  # the session goes on without the dead one and then ends
    released_after_s = None
    while released_after_s is None and time.monotonic() - ended < RELEASE_S:
        if used_mib(chosen.gpu) <= before_mib + SLACK_MIB and lock_is_free(locks):
            released_after_s = round(time.monotonic() - ended, 2)
        else:
            time.sleep(0.05)
    result = place / "result.json"
    state = json.loads(result.read_text(encoding="utf-8"))["state"] if result.is_file() else None
    return {
        "fault": fault,
        "in_time": ran_on,
        "exit_code": worker.returncode,
        "worker_ended_after_s": round(answered_s, 2),
        "released_after_s": released_after_s,
        "state": state,
    }


def used_mib(gpu: str) -> int:
    """Memory in use on the GPU, in MiB."""
    if gpu == "cpu":
        return 0
    command = ["nvidia-smi", f"--id={gpu}", "--query-gpu=memory.used", "--format=csv,noheader"]
    return int(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0]
    )


def gpu_processes(worker: int) -> list[int]:
    """The worker's descendants that have no child of their own: they run torch."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            )
    found, waiting = [], [worker]
    while waiting:
        children = [child for child, parent in parents.items() if parent == waiting[0]]
        if not children and waiting[0] != worker:
            found.append(waiting[0])
        waiting = [*waiting[1:], *children]
    return found


def lock_is_free(folder: Path) -> bool:
    for path in folder.glob("*.lock"):
        with path.open("rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main())
