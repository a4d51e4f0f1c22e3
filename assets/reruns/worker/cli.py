"""The worker's command line: arguments, signals, progress lines, exit codes."""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from . import WORKER_VERSION
from .codes import ExitCode
from .job import BundleRefused, load_bundle
from .lock import GpuBusy
from .machine import open_machine
from .moments import utc_now
from .processes import Stop
from .run import Options, run_bundle

DESCRIPTION = """Run a KernelIndex job bundle on one GPU and write a result bundle.

Exit codes: 0 a complete result bundle was written, whatever its verdicts (also when the deadline
came first: its state says so); 2 the bundle or the command line was refused; 3 infrastructure
error; 4 another worker holds the GPU; 128 plus the signal when told to stop.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="kernelindex_worker",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=WORKER_VERSION)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a job bundle")
    run.add_argument("bundle", type=Path, help="the job bundle's folder")
    run.add_argument("--out", type=Path, required=True, help="where the result bundle appears")
    run.add_argument("--gpu", default="0", help="GPU index, or cpu (for tests only)")
    run.add_argument("--deadline-s", type=float, help="stop after this many seconds")
    run.add_argument("--lock-dir", type=Path, help="folder of the per-GPU lock files")
    run.add_argument(
        "--build-cache", type=Path, help="reuse compiled libraries; for trials, never for evidence"
    )
    run.add_argument(
        "--sandbox", choices=("none", "bwrap"), default="none",
        help="bwrap: solutions see a read-only file system (bubblewrap must be installed)",
    )  # fmt: skip
    run.add_argument(
        "--keep-network", action="store_true", help="where the GPU's driver needs the network"
    )
    check = commands.add_parser("check", help="check a job bundle without running it")
    check.add_argument("bundle", type=Path, help="the job bundle's folder")
    chosen = parser.parse_args(arguments)
    try:
        bundle = load_bundle(chosen.bundle.absolute())
    except BundleRefused as error:
        return _say(f"refused: {error}", ExitCode.REFUSED)
    except OSError as error:
        return _say(f"refused: {chosen.bundle}: {error.strerror}", ExitCode.REFUSED)
    if chosen.command == "check":
        print(f"{bundle.bundle_id}: {len(bundle.items)} items, {len(bundle.files)} files, in order")
        return ExitCode.RESULT_WRITTEN
    return _run(bundle, chosen)


def _run(bundle: Any, chosen: argparse.Namespace) -> int:
    out = chosen.out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        return _say(f"refused: --out {out} already exists and is not empty", ExitCode.REFUSED)
    if chosen.gpu != "cpu" and not chosen.gpu.isdigit():
        return _say(f"refused: --gpu {chosen.gpu!r} is neither an index nor cpu", ExitCode.REFUSED)
    if chosen.sandbox == "bwrap" and shutil.which("bwrap") is None:
        return _say("refused: --sandbox bwrap: bubblewrap is not installed", ExitCode.REFUSED)
    seconds = bundle.limits.deadline_s
    if chosen.deadline_s is not None:
        if chosen.deadline_s <= 0:
            return _say("refused: --deadline-s must be above 0", ExitCode.REFUSED)
        seconds = min(seconds, chosen.deadline_s)
    stop = Stop(deadline=time.monotonic() + seconds)
    _handle_signals(stop)
    lock_folder = chosen.lock_dir or Path(tempfile.gettempdir()) / "kernelindex-gpu-locks"
    try:
        machine = open_machine(chosen.gpu)
    except LookupError as error:
        return _say(f"no such GPU: {error}", ExitCode.INFRASTRUCTURE)
    try:
        options = Options(lock_folder, chosen.sandbox, chosen.keep_network, chosen.build_cache)
        return run_bundle(bundle, out, machine, options, stop, emit)
    except GpuBusy as error:
        return _say(str(error), ExitCode.GPU_BUSY)
    except OSError as error:
        return _say(f"infrastructure error: {error}", ExitCode.INFRASTRUCTURE)


def emit(event: str, **fields: Any) -> None:
    """Print one progress event as a JSON line; a reader that went away changes nothing."""
    line = json.dumps({"event": event, **fields, "at": utc_now()}, ensure_ascii=False)
    try:
        print(line, flush=True)
    except OSError:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _handle_signals(stop: Stop) -> None:
    def note(number: int, frame: FrameType | None) -> None:
        stop.signal_number = number

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)


def _say(message: str, code: int) -> int:
    print(f"kernelindex_worker: {message}", file=sys.stderr, flush=True)
    return code
