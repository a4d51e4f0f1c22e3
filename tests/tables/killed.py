"""Kill a process at every named place of a step; run as a program, which forks for each place.

Arguments: a warehouse to copy, a folder for the copies. Prints one line for each kill, with the
folder of its warehouse and whether the process was really killed there.
"""

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from assets.leaderboards.build import build_database
from assets.tables.compaction import compact, remove_replaced
from assets.tables.failpoints import VARIABLE
from assets.tables.integrity import examine_files
from assets.tables.repair import repair_files
from assets.tables.warehouse import Warehouse
from tests.tables.damage import flip_a_byte, publish_samples


def do_publish(warehouse: Warehouse) -> None:
    publish_samples(warehouse, "d" * 40)


def do_compact(warehouse: Warehouse) -> None:
    compact(warehouse)


def do_remove(warehouse: Warehouse) -> None:
    compact(warehouse)
    remove_replaced(warehouse, timedelta(0))


def do_build(warehouse: Warehouse) -> None:
    build_database(warehouse)


def do_repair_publication(warehouse: Warehouse) -> None:
    newest = warehouse.publications()[-1]
    flip_a_byte(
        warehouse.folder_of(newest.publication_id) / "rerun_samples-00000.parquet",
        random.Random(0),
    )
    repair_files(warehouse, examine_files(warehouse).findings)


def do_repair_generation(warehouse: Warehouse) -> None:
    do_remove(warehouse)
    flip_a_byte(Path(warehouse.compacted_files("runs")[0]), random.Random(0))
    repair_files(warehouse, examine_files(warehouse).findings)


STEPS: dict[str, tuple[Callable[[Warehouse], None], tuple[str, ...]]] = {
    "publish": (
        do_publish,
        (
            "rows written",
            "publication built",
            "publication renamed",
            "head written",
            "links written",
        ),
    ),
    "compact": (
        do_compact,
        ("generation built", "generation renamed", "head written", "links written"),
    ),
    "remove": (do_remove, ("replaced folder renamed",)),
    "build": (do_build, ("database built",)),
    "repair a publication": (do_repair_publication, ("file remade",)),
    "repair a generation": (
        do_repair_generation,
        ("publication built", "publication renamed", "generation put aside"),
    ),
}


def main() -> None:
    base, copies = Path(sys.argv[1]), Path(sys.argv[2])
    for step, (do, places) in STEPS.items():
        for place in places:
            root = copies / f"{step} at {place}"
            shutil.copytree(base, root)
            process = os.fork()
            if process == 0:
                os.environ[VARIABLE] = place
                do(Warehouse(root))
                os._exit(0)
            _, status = os.waitpid(process, 0)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            print(f"{killed} {root}", flush=True)


if __name__ == "__main__":
    main()
