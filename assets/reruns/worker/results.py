"""Write a result bundle: every file first, then one rename that makes it appear.

Pure standard library. The format is described by `assets.reruns.bundles`, which reads it back.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import WORKER_VERSION
from .calibration import Calibration
from .codes import SCORED_STATUSES, State
from .job import JobBundle, digest_file
from .moments import utc_now
from .statistics import Statistics, speedup, summarize
from .subjects import Candidate, Group, Subject
from .verdict import may_become_verified, status_for

RESULT_SCHEMA = "kernelindex-result-bundle/1"


@dataclass(frozen=True)
class ItemResult:
    """One item's line in result.json, with what else is written about it."""

    document: dict[str, Any]
    rows: list[dict[str, Any]]
    log: bytes
    trace: dict[str, Any] | None


def item_result(
    bundle: JobBundle,
    candidate: Candidate,
    group: Group | None,
    referee: Subject | None,
    environment: Mapping[str, Any],
    scrub: Callable[[str], str],
) -> ItemResult:
    """Put together everything about one item that is finished or will not be."""
    status = status_for(candidate.reasons)
    subject = candidate.subject
    device = wall = reference = None
    if subject is not None and candidate.measured:
        device = summarize(subject.series.device)
        wall = summarize(subject.series.wall)
        reference = summarize(referee.series.device) if referee else None
    reasons = [{**entry, "text": scrub(entry["text"])} for entry in candidate.reasons]
    document = {
        "item_id": candidate.item.item_id,
        "status": status.value,
        "reasons": reasons,
        "notes": [{**entry, "text": scrub(entry["text"])} for entry in candidate.notes],
        "reproduces": candidate.item.reproduces,
        "definition_digest": candidate.item.definition.digest,
        "workload_digest": candidate.item.workload.digest,
        "solution_digest": candidate.item.solution.digest,
        "statistics": _document(device),
        "wall_statistics": _document(wall),
        "reference_statistics": _document(reference),
        "outside_ns_per_call": candidate.outside_ns,
        "speedup": speedup(reference, device),
        "correctness": _correctness(candidate),
        "call_convention": candidate.convention.document() if candidate.convention else None,
        "roofline": group.roofline.document() if group else None,
        "isolation": candidate.isolation,
        "log": f"logs/{candidate.item.item_id}.txt",
    }
    rows = [{"item_id": candidate.item.item_id, **row} for row in (subject.rows if subject else [])]
    log = _log(candidate, reasons, bundle.limits.max_log_bytes, scrub)
    trace = None
    if status in SCORED_STATUSES:
        trace = _trace(bundle, candidate, document, environment, log.decode("utf-8"))
    return ItemResult(document, rows, log, trace)


def write_result(
    out: Path,
    bundle: JobBundle,
    state: State,
    started_at: str,
    results: Sequence[ItemResult],
    reference_rows: Iterable[Mapping[str, Any]],
    environment: Mapping[str, Any],
    calibration: Calibration,
    error: str | None,
) -> Path:
    """Write the result bundle beside `out` and rename it there; raises `OSError`.

    `out` must not exist, or be an empty folder.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        (staging / "logs").mkdir()
        for result in results:
            (staging / result.document["log"]).write_bytes(result.log)
        _write_lines(
            staging / "samples.jsonl",
            [*(row for result in results for row in result.rows), *reference_rows],
        )
        _write_lines(staging / "traces.jsonl", [r.trace for r in results if r.trace is not None])
        _write_json(staging / "environment.json", environment)
        files = {
            path.relative_to(staging).as_posix(): {
                "digest": digest_file(path),
                "size_bytes": path.stat().st_size,
            }
            for path in sorted(staging.rglob("*"))
            if path.is_file()
        }
        device = environment["device"]
        document = {
            "schema": RESULT_SCHEMA,
            "bundle_id": bundle.bundle_id,
            "nonce": bundle.nonce,
            "worker_version": WORKER_VERSION,
            "protocol": bundle.protocol.document(),
            "seeds": list(bundle.seeds),
            "started_at": started_at,
            "finished_at": utc_now(),
            "state": state.value,
            "error": error,
            "device": device,
            "may_become_verified": may_become_verified(
                str(device.get("kind")),
                calibration.clean,
                (entry["code"] for result in results for entry in result.document["notes"]),
            ),
            "calibration": calibration.document(),
            "items": [result.document for result in results],
            "files": files,
        }
        _write_json(staging / "result.json", document)
        staging.chmod(0o755)
        if out.is_dir():
            out.rmdir()  # only an empty folder may be in the way
        staging.rename(out)
        _sync(out.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return out


def _document(statistics: Statistics | None) -> dict[str, Any] | None:
    return statistics.document() if statistics is not None else None


def _correctness(candidate: Candidate) -> dict[str, Any] | None:
    found = candidate.correctness
    if found is None:
        return None
    return {
        "max_absolute_error": found["max_absolute_error"],
        "max_relative_error": found["max_relative_error"],
        "matched_ratio": found["matched_ratio"],
        "outputs": [
            {key: value for key, value in output.items() if key != "right"}
            for output in found["outputs"]
        ],
    }


def _log(
    candidate: Candidate,
    reasons: Sequence[Mapping[str, str]],
    limit: int,
    scrub: Callable[[str], str],
) -> bytes:
    head = "".join(f"[{entry['code']}] {entry['text']}\n" for entry in reasons)
    printed = b""
    if candidate.log.is_file():
        with candidate.log.open("rb") as stream:
            stream.seek(max(0, candidate.log.stat().st_size - limit))
            printed = stream.read(limit)
    text = head + scrub(printed.decode("utf-8", errors="replace"))
    content = text.encode("utf-8")
    if len(content) <= limit:
        return content
    # The end is where an error stands; what is cut from the middle of a character is dropped.
    return content[-limit:].decode("utf-8", errors="ignore").encode("utf-8")


def _trace(
    bundle: JobBundle,
    candidate: Candidate,
    document: Mapping[str, Any],
    environment: Mapping[str, Any],
    log: str,
) -> dict[str, Any]:
    """The item as a FlashInfer-Bench trace row."""
    definition = bundle.read_document(candidate.item.definition)
    workload = bundle.read_document(candidate.item.workload)
    solution = bundle.read_document(candidate.item.solution)
    correctness, performance = document["correctness"], None
    if document["statistics"] and document["reference_statistics"]:
        performance = {
            "latency_ms": document["statistics"]["median"] / 1e6,
            "reference_latency_ms": document["reference_statistics"]["median"] / 1e6,
            "speedup_factor": document["speedup"],
        }
    passed = document["status"] == "PASSED"
    software = environment["software"]
    return {
        "definition": _field(definition, "name"),
        "workload": _field(workload, "workload") or workload,
        "solution": _field(solution, "name"),
        "evaluation": {
            "status": document["status"],
            "environment": {
                "hardware": environment["device"].get("name", ""),
                "libs": {
                    name: software[name] for name in ("torch", "triton", "cuda") if name in software
                },
            },
            "timestamp": utc_now(),
            "log": log,
            "correctness": {
                "max_relative_error": correctness["max_relative_error"],
                "max_absolute_error": correctness["max_absolute_error"],
                "extra": {"matched_ratio": correctness["matched_ratio"]},
            }
            if correctness and document["status"] in ("PASSED", "INCORRECT_NUMERICAL")
            else None,
            "performance": performance if passed else None,
        },
    }


def _field(document: Any, name: str) -> Any:
    """A field of a document that may be no object at all."""
    return document.get(name) if isinstance(document, dict) else None


def _write_lines(path: Path, documents: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for document in documents:
            stream.write(json.dumps(document, ensure_ascii=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        json.dump(document, stream, ensure_ascii=False, indent=1, sort_keys=True)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
