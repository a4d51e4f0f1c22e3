"""What launchers call: `PYTHON supervisor.pyz SUB-COMMAND DIRECTORY`.

Every sub-command answers with one JSON object on its last line of stdout, except `run` (whose
exit code is the worker's), `log` and `pack` (raw bytes).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from . import processes, run_directory, supervise, transfer


def main(arguments: list[str] | None = None) -> int:
    """Run one sub-command and return the exit code."""
    options = _parser().parse_args(arguments)
    directory: Path = options.directory
    if options.command == "run":
        processes.signal_when_parent_dies(supervise.PARENT_DIED)
        return supervise.supervise(directory, repeat=options.repeat)
    if options.command == "log":
        sys.stdout.buffer.write(run_directory.read_log(directory, options.offset))
        return 0
    if options.command == "pack":
        transfer.pack(directory / run_directory.RESULT, sys.stdout.buffer)
        return 0
    print(json.dumps(_answer(options, directory)))
    return 0


def _answer(options: argparse.Namespace, directory: Path) -> dict[str, object]:
    if options.command == "receive":
        return {"new": _receive(directory, options.limit_bytes)}
    if options.command == "start":
        return {"said": supervise.start_detached(directory)}
    if options.command == "status":
        return asdict(run_directory.gather(directory))
    if options.command == "cancel":
        return {"killed": supervise.cancel(directory, options.reason)}
    shutil.rmtree(directory, ignore_errors=True)  # remove
    shutil.rmtree(_waiting_room(directory), ignore_errors=True)
    return {"removed": not directory.exists()}


def _receive(directory: Path, limit_bytes: int) -> bool:
    """Unpack a run directory from stdin; a second receiver waits for the first."""
    directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    waiting_room = _waiting_room(directory)
    waiting_room.mkdir(exist_ok=True, mode=0o700)
    lock = run_directory.RunLock(waiting_room)
    if not lock.acquire(timeout_s=60.0):
        raise transfer.TransferError(f"{directory.name}: another transfer holds the directory")
    try:
        return transfer.unpack(sys.stdin.buffer, directory, limit_bytes)
    finally:
        lock.release()


def _waiting_room(directory: Path) -> Path:
    return directory.parent / f".receiving-{directory.name}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="supervisor", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "start", "status", "cancel", "log", "receive", "pack", "remove"):
        command = commands.add_parser(name)
        command.add_argument("directory", type=Path)
        if name == "run":
            command.add_argument("--repeat", action="store_true")
        if name == "cancel":
            command.add_argument("--reason", default="cancelled")
        if name == "log":
            command.add_argument("--offset", type=int, default=0)
        if name == "receive":
            command.add_argument("--limit-bytes", type=int, required=True)
    return parser
