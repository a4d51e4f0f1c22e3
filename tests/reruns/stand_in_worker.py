"""A worker that keeps the real worker's contract and measures nothing.

`PYTHON stand_in_worker.py run BUNDLE --out RESULT [--gpu G] [--deadline-s S] [--lock-dir D]`.
`bundle.json` may say under `stand_in` how to misbehave; see `StandIn`. Standard library only,
because launchers copy this one file.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class CancelledError(Exception):
    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number


class StandIn:
    """What the bundle asks for besides its items."""

    def __init__(self, content: dict[str, object]) -> None:
        self.ignore_signals = bool(content.get("ignore_signals", False))
        self.ignore_deadline = bool(content.get("ignore_deadline", False))
        self.exit_code = int(str(content.get("exit_code", 0)))
        self.leave_child_s = float(str(content.get("leave_child_s", 0)))
        self.result_bytes = int(str(content.get("result_bytes", 1000)))
        self.nonce = content.get("nonce")
        self.after_result_s = float(str(content.get("after_result_s", 0)))
        self.ledger = content.get("ledger")

    def note(self, what: str) -> None:
        if self.ledger is not None:
            with Path(str(self.ledger)).open("a") as ledger:
                ledger.write(f"{what} {os.getpid()} {time.time()}\n")


def main() -> int:
    options = _parse()
    bundle = json.loads((options.bundle / "bundle.json").read_text())
    stand_in = StandIn(bundle.get("stand_in", {}))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if stand_in.ignore_signals else _cancel)
    if options.lock_dir is not None and not _take_gpu(options.lock_dir, options.gpu):
        return 4
    stand_in.note("started")
    if stand_in.exit_code:
        print("going wrong as asked", file=sys.stderr)
        return stand_in.exit_code
    if stand_in.leave_child_s:  # a child in a session of its own, deaf to INT and TERM
        deaf = "import signal, time\nfor number in (2, 15): signal.signal(number, 1)\n"
        code = f"{deaf}time.sleep({stand_in.leave_child_s})"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    ends_at = time.monotonic() + options.deadline_s
    say("started", bundle_id=bundle["bundle_id"], gpu=options.gpu)
    try:
        state = _measure(bundle, ends_at, stand_in)
    except CancelledError as cancelled:
        say("finished", state="cancelled")
        return cancelled.exit_code
    _publish(options.out, bundle, stand_in, state)
    say("finished", state=state)
    stand_in.note("published")
    time.sleep(stand_in.after_result_s)
    return 0


def _measure(bundle: dict[str, object], ends_at: float, stand_in: StandIn) -> str:
    items = bundle["items"]
    assert isinstance(items, list)
    for item in items:
        say("item_started", item=item["id"])
        finished_at = time.monotonic() + item["sleep_s"]
        while time.monotonic() < finished_at:
            if time.monotonic() > ends_at and not stand_in.ignore_deadline:
                return "deadline"
            time.sleep(0.01)
        say("item_finished", item=item["id"])
    return "complete"


def _publish(out: Path, bundle: dict[str, object], stand_in: StandIn, state: str) -> None:
    staged = out.with_name(f".{out.name}.{os.getpid()}")
    staged.mkdir()
    samples = os.urandom(stand_in.result_bytes)
    (staged / "samples.bin").write_bytes(samples)
    content = {
        "bundle_id": bundle["bundle_id"],
        "nonce": stand_in.nonce or bundle["nonce"],
        "state": state,
        "samples_sha256": hashlib.sha256(samples).hexdigest(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "environment": sorted(os.environ),
        "interpreter": sys.executable,
    }
    (staged / "result.json").write_text(json.dumps(content))
    staged.rename(out)


def _take_gpu(lock_dir: Path, gpu: str | None) -> bool:
    uuid = os.environ.get("CUDA_VISIBLE_DEVICES") or gpu or "0"
    lock_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock_dir / f"gpu-{uuid}.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _cancel(signal_number: int, _: object) -> None:
    raise CancelledError(signal_number)


def say(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["run"])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpu")
    parser.add_argument("--deadline-s", type=float, default=3600.0)
    parser.add_argument("--lock-dir", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
