"""Say that a directory of files is being read, so that retention leaves it alone.

A lease is a shared lock of the operating system on the directory's record; it ends with the
process that holds it, however that ends. Nothing waits for a lease.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from assets.tables.warehouse import GENERATION_RECORD, PUBLICATION_RECORD, Warehouse


@contextmanager
def reading(warehouse: Warehouse) -> Iterator[None]:
    """Hold a lease on every directory that the warehouse's rows lie in now."""
    with ExitStack() as leases:
        for folder in _folders(warehouse):
            descriptor = os.open(_record(folder), os.O_RDONLY)
            leases.callback(os.close, descriptor)
            # Waits at most for the moment in which `in_use` looks.
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


def in_use(folder: Path) -> bool:
    """Whether any process holds a lease on a directory."""
    try:
        descriptor = os.open(_record(folder), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _folders(warehouse: Warehouse) -> Iterable[Path]:
    generation = warehouse.generation()
    if generation is not None:
        yield warehouse.folder_of_generation(generation.number)
    for record in warehouse.uncompacted():
        yield warehouse.folder_of(record.publication_id)


def _record(folder: Path) -> Path:
    in_generation = folder / GENERATION_RECORD
    return in_generation if in_generation.is_file() else folder / PUBLICATION_RECORD
