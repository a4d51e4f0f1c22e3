"""Read the cases as FlashInfer-Bench documents; standard library only, also used by `bench/`."""

import json
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One solution and the verdict that it must get.

    `does` is the sentence that its source begins with. `twin` names the honest case that does the
    work which a dishonest one pretends to do; what it gained is the twin's time over its own.
    """

    name: str
    kind: str
    does: str
    twin: str | None
    needs: tuple[str, ...]
    tools: tuple[str, ...]
    definition: dict[str, Any]
    workload: dict[str, Any]
    solution: dict[str, Any]
    statuses: tuple[str, ...]
    reasons: tuple[str, ...]

    def judge(self, status: str, reasons: list[str]) -> str | None:
        """None when the verdict is right, else what is wrong with it."""
        if status not in self.statuses:
            return f"is {status} {reasons}, must be {' or '.join(self.statuses)}"
        if self.reasons and not set(self.reasons) & set(reasons):
            return f"is {status} for {reasons}, must be for {' or '.join(self.reasons)}"
        return None


def load_cases(device: str) -> list[Case]:
    """The cases that can run on `cpu` or `cuda`."""
    table = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    return [
        _case(entry, table["workloads"], device)
        for entry in table["cases"]
        if device in entry["devices"]
    ]


def missing(case: Case) -> list[str]:
    """What a case needs and this machine lacks: modules of this interpreter, programs."""
    modules = [name for name in case.needs if find_spec(name) is None]
    return modules + [name for name in case.tools if shutil.which(name) is None]


def gain(own_ns: float, twin_ns: float) -> float:
    """How much faster a case was said to be than its honest twin: 0.05 is 5%."""
    return twin_ns / own_ns - 1


def _does(source: str) -> str:
    """The first sentence of a source: a docstring, or a comment in C++."""
    return " ".join(source.strip().splitlines()[0].strip('"/ ').split())


def _case(entry: dict[str, Any], workloads: dict[str, Any], device: str) -> Case:
    name, file = entry["name"], entry["file"]
    path = FOLDER / "definitions" / f"{entry['definition']}.json"
    definition = json.loads(path.read_text(encoding="utf-8"))
    inputs = {
        key: {"type": "scalar", "value": 1e-6} if spec["shape"] is None else {"type": "random"}
        for key, spec in definition["inputs"].items()
    }
    axes = entry.get("axes", {}).get(device) or workloads[entry["definition"]][device]
    uuid = "-".join([entry["definition"], device, *map(str, axes.values())])
    source = (FOLDER / "solutions" / file).read_text(encoding="utf-8")
    main = "main.cu" if file.endswith(".cu") else "main.py"
    spec = {"language": "python", "entry_point": f"{main}::run", "target_hardware": ["any"]}
    return Case(
        name=name,
        kind=entry["kind"],
        does=_does(source),
        twin=entry.get("twin"),
        needs=tuple(entry.get("needs", ())),
        tools=tuple(entry.get("tools", ())),
        definition=definition,
        workload={"uuid": uuid, "axes": axes, "inputs": inputs},
        solution={
            "name": name,
            "definition": entry["definition"],
            "author": "kernelindex-tests",
            "spec": {**spec, **entry["spec"]},
            "sources": [{"path": main, "content": source}],
        },
        statuses=tuple(entry["status"]),
        reasons=tuple(entry["reasons"]),
    )
