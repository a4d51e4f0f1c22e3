"""The device of a run: which one it is, what is known about it, its state as time goes by.

Pure standard library: figures that need torch come from a calibrating child process.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import nvml
from .moments import utc_now
from .processes import Child, Nursery

_FILE_BYTES = 1 << 30
_CALIBRATION_TIMEOUT_S = 180.0


@dataclass
class Machine:
    """The device of this run and what was read about it."""

    kind: str
    visible: str | None
    lock_name: str
    library: nvml.Nvml | None = None
    handle: Any = None
    uuid: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    other_processes: int = 0
    telemetry: list[dict[str, Any]] = field(default_factory=list)

    def observe(self) -> None:
        """Read clocks, power, temperature and throttle reasons once."""
        if self.library is not None and self.handle is not None:
            self.telemetry.append({"at": utc_now(), **self.library.state(self.handle)})


def open_machine(gpu: str) -> Machine:
    """The device named on the command line; raises `LookupError` when it is not there."""
    if gpu == "cpu":
        return Machine("cpu", None, "cpu")
    library = nvml.open_nvml()
    choice = nvml.choose_gpu(int(gpu), os.environ, library)
    machine = Machine("cuda", choice.visible, choice.uuid or f"index-{choice.visible}")
    if library is not None:
        machine.library, machine.handle = library, library.handle(choice.visible)
        machine.uuid = choice.uuid
        machine.facts = library.facts(machine.handle) if machine.handle is not None else {}
        if machine.handle is not None:
            machine.other_processes = library.processes(machine.handle)
    return machine


def calibrate(
    nursery: Nursery, scratch: Path, settings: dict[str, Any], machine: Machine
) -> dict[str, float] | None:
    """Measure the machine; on the first time also learn what device this is.

    Raises `ChildFailed` when the device cannot be used at all.
    """
    machine.observe()
    with _child(nursery, scratch, settings, "calibration") as child:
        answer = child.ask("calibrate", _CALIBRATION_TIMEOUT_S).values
    machine.observe()
    facts = dict(answer["device"])
    seen = str(facts.pop("uuid", ""))
    machine.software = answer["software"]
    machine.facts = {**facts, **machine.facts}
    if seen and machine.uuid and seen not in machine.uuid:
        machine.facts["mismatch"] = "the measured GPU is not the locked one"
    return {name: float(value) for name, value in answer["values"].items()}


@contextmanager
def _child(nursery: Nursery, scratch: Path, settings: dict[str, Any], name: str) -> Iterator[Child]:
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=scratch))
    child = nursery.start(
        folder / "log.txt", {**settings, "folder": str(folder), "file_bytes": _FILE_BYTES}
    )
    try:
        yield child
    finally:
        child.close()
