"""A warehouse with the sample, made once, and copies of it for tests that write."""

import json
import shutil
from pathlib import Path

from assets.reruns.lane import worker_file
from assets.tables.reader import open_database
from assets.tables.warehouse import Warehouse


def copy_of(warehouse: Warehouse, folder: Path) -> Warehouse:
    """The same warehouse at another place."""
    shutil.copytree(warehouse.root, folder)
    return Warehouse(folder)


def rows(warehouse: Warehouse, query: str) -> list[tuple[object, ...]]:
    """Answer of the database as it stands."""
    with open_database(warehouse.root) as connection:
        return connection.execute(query).fetchall()


def use_local(warehouse: Warehouse, python: str) -> None:
    """Set the launcher `local`, with GPU locks of its own: other tests use the CPU too."""
    settings = {
        "worker_file": str(worker_file(warehouse)),
        "python": python,
        "lock_dir": str(warehouse.root / "locks"),
        "poll_interval_s": 0.1,
    }
    path = warehouse.root / "reruns" / "launchers.json"
    path.write_text(json.dumps({"local": settings}))


def a_run(warehouse: Warehouse, solution: str, workload_order: str = "asc") -> str:
    """A reported run of a solution, on its smallest or largest workload by latency."""
    [(digest,)] = rows(
        warehouse,
        "select run_digest from runs where source = 'flashinfer-bench' "
        f"and solution_name = '{solution}' order by primary_value {workload_order} limit 1",
    )
    return str(digest)
