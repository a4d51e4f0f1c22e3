"""The real worker on the CPU in the place of several GPUs, held back until a test lets it go.

Launchers copy this one file as their worker. Its settings stand in the environment: HELD_WORKER is
the real worker, HELD_LEDGER a file that notes who measured where and when, HELD_RELEASE a file
whose appearance lets jobs go on whose bundle gives the reason `hold`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> int:
    bundle = json.loads((Path(arguments[1]) / "bundle.json").read_bytes())
    gpu = after(arguments, "--gpu")
    arguments[arguments.index("--gpu") + 1] = "cpu"
    arguments[arguments.index("--lock-dir") + 1] += f"/gpu-{gpu}"
    note("start", gpu, bundle["reason"])
    while bundle["reason"] == "hold" and not Path(os.environ["HELD_RELEASE"]).exists():
        time.sleep(0.1)
    ended = subprocess.run([sys.executable, os.environ["HELD_WORKER"], *arguments], check=False)
    note("end", gpu, bundle["reason"])
    return ended.returncode


def after(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def note(what: str, gpu: str, reason: str) -> None:
    with Path(os.environ["HELD_LEDGER"]).open("a") as ledger:
        ledger.write(json.dumps([what, gpu, reason]) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
