"""Read the cases as FlashInfer-Bench documents; standard library only, also used by `bench/`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One solution and the verdict that it must get."""

    name: str
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


def _case(entry: dict[str, Any], workloads: dict[str, Any], device: str) -> Case:
    name, file = entry["name"], entry["file"]
    path = FOLDER / "definitions" / f"{entry['definition']}.json"
    definition = json.loads(path.read_text(encoding="utf-8"))
    inputs = {
        key: {"type": "scalar", "value": 1e-6} if spec["shape"] is None else {"type": "random"}
        for key, spec in definition["inputs"].items()
    }
    axes = workloads[entry["definition"]][device]
    main = "main.cu" if file.endswith(".cu") else "main.py"
    spec = {"language": "python", "entry_point": f"{main}::run", "target_hardware": ["any"]}
    return Case(
        name=name,
        definition=definition,
        workload={"uuid": f"{entry['definition']}-{device}", "axes": axes, "inputs": inputs},
        solution={
            "name": name,
            "definition": entry["definition"],
            "author": "kernelindex-tests",
            "spec": {**spec, **entry["spec"]},
            "sources": [
                {
                    "path": main,
                    "content": (FOLDER / "solutions" / file).read_text(encoding="utf-8"),
                }
            ],
        },
        statuses=tuple(entry["status"]),
        reasons=tuple(entry["reasons"]),
    )
