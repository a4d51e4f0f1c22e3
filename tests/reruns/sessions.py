"""Sessions for tests, made from the shipped one: a part of it, a later one, a trial, a forged one.

What is written is signed again (sizes, digests, bundle id), as somebody would do it who wants a
changed bundle to be believed.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.reruns.sample_results import ARCHIVES, unpack
from assets.reruns.worker.calibration import judge
from assets.reruns.worker.documents import problem_of
from assets.reruns.worker.job import bundle_id_of, canonical_json, digest_file
from assets.reruns.worker.roofline import roofline
from assets.reruns.worker.statistics import share, summarize

PASSED, WRONG = "run-478fbd655be95b34", "run-9ed4d7f5f1dd3fb3"
WITH_TENSORS, UNBUILT = "run-bbdffb8ff4928add", "run-ee3c549d8873cefa"
PART = (PASSED, WRONG, WITH_TENSORS, UNBUILT)
"""Items of the shipped session: two on one workload, of which one fails, one with a tensor file,
and one that does not compile."""

Json = dict[str, Any]
_SERIES = (
    ("statistics", "candidate", "device", "device_ns"),
    ("wall_statistics", "candidate", "wall", "wall_ns"),
    ("reference_statistics", "reference", "device", "device_ns"),
)


def unpacked(folder: Path) -> Path:
    """The shipped session: the folders `bundle` and `result`."""
    unpack(ARCHIVES[0], folder)
    return folder


@dataclass
class StoredSession:
    """A job and its result in the files of a folder, to be changed and written back."""

    folder: Path
    bundle: Json
    result: Json
    environment: Json
    samples: list[Json]
    traces: list[Json]

    @classmethod
    def read(cls, folder: Path) -> "StoredSession":
        result = folder / "result"
        return cls(
            folder,
            json.loads((folder / "bundle" / "bundle.json").read_bytes()),
            json.loads((result / "result.json").read_bytes()),
            json.loads((result / "environment.json").read_bytes()),
            _lines(result / "samples.jsonl"),
            _lines(result / "traces.jsonl"),
        )

    def item(self, item_id: str = PASSED) -> Json:
        return next(item for item in self.result["items"] if item["item_id"] == item_id)

    def samples_of(self, item_id: str, subject: str, mode: str) -> list[Json]:
        wanted = (item_id, subject, mode)
        return [s for s in self.samples if (s["item_id"], s["subject"], s["mode"]) == wanted]

    def keep(self, item_ids: Sequence[str]) -> None:
        """Only these items, with their samples, trace rows, logs and documents."""
        scored = [item["item_id"] for item in self.result["items"]]
        self.traces = [
            trace for item_id, trace in zip(scored, self.traces, strict=True) if item_id in item_ids
        ]
        for place in (self.bundle["items"], self.result["items"], self.samples):
            place[:] = [entry for entry in place if entry["item_id"] in item_ids]
        for log in (self.folder / "result" / "logs").iterdir():
            if log.stem not in item_ids:
                log.unlink()
        named = {
            part["path"]
            for item in self.bundle["items"]
            for part in (*(item[k] for k in ("definition", "workload", "solution")),
                         *item["tensors"])
        }  # fmt: skip
        for path in sorted(set(self.bundle["files"]) - named):
            (self.folder / "bundle" / path).unlink()

    def recompute(self) -> None:
        """Statistics, speed-up and trace rows as the samples give them."""
        for item in self.result["items"]:
            if item["statistics"] is None:
                continue
            for field, subject, mode, value in _SERIES:
                rounds: dict[int, list[int]] = {}
                for sample in self.samples_of(item["item_id"], subject, mode):
                    rounds.setdefault(sample["round"], []).append(sample[value])
                found = summarize(rounds)
                assert found is not None
                item[field] = found.document()
            item["speedup"] = item["reference_statistics"]["median"] / item["statistics"]["median"]
        for item, trace in zip(self.result["items"], self.traces, strict=True):
            if trace["evaluation"]["performance"] is not None:
                trace["evaluation"]["performance"] = {
                    "latency_ms": item["statistics"]["median"] / 1e6,
                    "reference_latency_ms": item["reference_statistics"]["median"] / 1e6,
                    "speedup_factor": item["speedup"],
                }

    def write(self) -> Path:
        """Write everything back, signed."""
        bundle, result = self.folder / "bundle", self.folder / "result"
        self.bundle["files"] = _listing(bundle, "bundle.json")
        for item, outcome in zip(self.bundle["items"], self.result["items"], strict=True):
            for kind in ("definition", "workload", "solution"):
                digest = self.bundle["files"][item[kind]["path"]]["digest"]
                if outcome[f"{kind}_digest"] == item[kind]["digest"]:
                    outcome[f"{kind}_digest"] = digest
                item[kind]["digest"] = digest
            for tensor in item["tensors"]:
                tensor["digest"] = self.bundle["files"][tensor["path"]]["digest"]
        self.bundle["bundle_id"] = bundle_id_of(self.bundle)
        (bundle / "bundle.json").write_bytes(canonical_json(self.bundle))
        self.result["bundle_id"] = self.bundle["bundle_id"]
        (result / "environment.json").write_text(json.dumps(self.environment))
        for name, rows in (("samples", self.samples), ("traces", self.traces)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (result / f"{name}.jsonl").write_text(text)
        self.result["files"] = _listing(result, "result.json")
        (result / "result.json").write_text(json.dumps(self.result))
        return self.folder


def part_of_shipped(folder: Path, item_ids: Sequence[str] = PART) -> StoredSession:
    """Some items of the shipped session as a session of their own, written to a folder."""
    session = StoredSession.read(unpacked(folder))
    session.keep(item_ids)
    session.write()
    return session


def changed_copy(
    session: StoredSession, folder: Path, change: Callable[[StoredSession], None]
) -> Path:
    """A session's copy after a change, signed."""
    shutil.copytree(session.folder, folder)
    copy = StoredSession.read(folder)
    change(copy)
    return copy.write()


def on_another_day(session: StoredSession, day: str) -> None:
    """As if it had been measured again on a day: another job, other contents, the same times."""
    session.bundle["nonce"] = session.result["nonce"] = f"nonce of {day}"
    session.result |= {"started_at": f"{day}T00:00:00Z", "finished_at": f"{day}T01:00:00Z"}
    for sample in session.samples:
        sample["seed"] = (sample["seed"] + int(day.replace("-", ""))) % 2**62


def on_a_cpu(session: StoredSession) -> None:
    """As the worker writes a trial on a CPU."""
    device = {"kind": "cpu", "name": "CPU", "l2_bytes": 0}
    calibration = session.result["calibration"]
    found = judge(calibration["before"], calibration["after"], None, True, [], 0)
    session.environment |= {"device": device, "cpu_fallback": True, "telemetry": []}
    session.result |= {
        "device": device,
        "calibration": found.document(),
        "may_become_verified": False,
    }
    for asked, item in zip(session.bundle["items"], session.result["items"], strict=True):
        definition, workload = (
            json.loads((session.folder / "bundle" / asked[kind]["path"]).read_bytes())
            for kind in ("definition", "workload")
        )
        tensors = {tensor["name"]: tensor["path"] for tensor in asked["tensors"]}
        item["roofline"] = roofline(problem_of(definition, workload, tensors), None, 0).document()
    for trace in session.traces:
        trace["evaluation"]["environment"]["hardware"] = "CPU"


def with_fewer_calls(session: StoredSession, samples: int = 100) -> None:
    """As if the job had asked for fewer timed calls than the protocol does."""
    protocol = session.bundle["protocol"]
    own = protocol["samples"]
    kept: dict[tuple[int, int], int] = {}
    for number in range(protocol["rounds"]):
        new = share(samples, protocol["rounds"], number)
        old = share(own, protocol["rounds"], number)
        kept |= {(number, index): place for index, place in zip(old, new, strict=False)}
    session.samples = [
        sample if sample["mode"] == "wall" else {**sample, "index": kept[place]}
        for sample in session.samples
        if sample["mode"] == "wall" or (place := (sample["round"], sample["index"])) in kept
    ]
    protocol["samples"] = session.result["protocol"]["samples"] = samples
    session.recompute()


def _lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _listing(folder: Path, manifest: str) -> Json:
    return {
        path.relative_to(folder).as_posix(): {
            "digest": digest_file(path),
            "size_bytes": path.stat().st_size,
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != manifest
    }
