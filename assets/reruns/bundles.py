"""Both ends of the way to a GPU and back: job bundles written, result bundles read and checked.

The formats are plain directories (`bundle.json`, `result.json` and what they list by digest).
Nothing here runs a solution, and nothing here needs torch. What a result means for a published
run is decided elsewhere. `job_bundles.py` holds the writing end, which needs no pydantic.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assets.reruns.job_bundles import BundleError, BundleItem, read_bundle, write_bundle
from assets.reruns.result_documents import ItemOutcome, ResultDocument, Sample
from assets.reruns.worker.codes import REASONS, State, Status
from assets.reruns.worker.job import (
    BundleRefused,
    JobBundle,
    Limits,
    Protocol,
    digest_file,
    safe_relative_path,
)
from assets.reruns.worker.results import RESULT_SCHEMA
from assets.reruns.worker.statistics import median

__all__ = [
    "BundleError",
    "BundleItem",
    "JobBundle",
    "Limits",
    "Protocol",
    "ResultBundle",
    "read_bundle",
    "read_result",
    "write_bundle",
]

MAX_RESULT_JSON_BYTES = 64 * 1024 * 1024
MAX_RESULT_FILE_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class ResultBundle:
    """A result bundle whose every file was checked."""

    root: Path
    result: ResultDocument
    environment: dict[str, Any]
    samples: tuple[Sample, ...]
    traces: tuple[dict[str, Any], ...]

    def log_of(self, item: ItemOutcome) -> str:
        """The log text of one item."""
        return (self.root / item.log).read_text(encoding="utf-8")


def read_result(folder: Path, bundle: JobBundle) -> ResultBundle:
    """Read a result bundle and check that it answers this job bundle, whole and unchanged.

    Checked: schema, bundle id, nonce, protocol and seeds; every file's path, size and digest, and
    that no other file is there; one outcome per item, with the digests that were asked for; known
    reason codes; that passed items have statistics, and that these follow from the raw samples;
    that a CPU run does not claim it could be verified. Raises `BundleError`.
    """
    manifest = folder / "result.json"
    if manifest.is_symlink() or not manifest.is_file():
        raise BundleError(f"{folder}: there is no result.json")
    if manifest.stat().st_size > MAX_RESULT_JSON_BYTES:
        raise BundleError(f"{manifest} is larger than {MAX_RESULT_JSON_BYTES} bytes")
    try:
        result = ResultDocument.model_validate_json(manifest.read_bytes())
    except ValidationError as error:
        raise BundleError(f"{manifest} is no {RESULT_SCHEMA}: {_first(error)}") from error
    _check_answers(manifest, result, bundle)
    _check_result_files(folder, result)
    samples = tuple(_lines(folder / "samples.jsonl", Sample))
    _check_items(manifest, result, bundle, samples)
    return ResultBundle(
        root=folder,
        result=result,
        environment=_object(folder / "environment.json"),
        samples=samples,
        traces=tuple(_objects(folder / "traces.jsonl")),
    )


def _check_answers(manifest: Path, result: ResultDocument, bundle: JobBundle) -> None:
    for name, found, expected in (
        ("bundle_id", result.bundle_id, bundle.bundle_id),
        ("nonce", result.nonce, bundle.nonce),
        ("protocol", result.protocol, bundle.protocol.document()),
        ("seeds", result.seeds, bundle.seeds),
    ):
        if found != expected:
            raise BundleError(f"{manifest}: {name} is {found!r}; the job bundle has {expected!r}")
    on_gpu = result.device.get("kind") == "cuda"
    if result.may_become_verified and not (on_gpu and result.calibration.clean):
        raise BundleError(f"{manifest}: only a clean run on a GPU may become verified")
    if result.finished_at < result.started_at:
        raise BundleError(f"{manifest}: finished_at is before started_at")


def _check_result_files(folder: Path, result: ResultDocument) -> None:
    required = {"samples.jsonl", "traces.jsonl", "environment.json"}
    required |= {item.log for item in result.items}
    for path in sorted(required - set(result.files)):
        raise BundleError(f"{folder}: result.json does not list {path}")
    found = set()
    for place in folder.rglob("*"):
        relative = place.relative_to(folder).as_posix()
        if place.is_symlink():
            raise BundleError(f"{folder}/{relative} is a link; a result holds plain files only")
        if place.is_file() and relative != "result.json":
            found.add(relative)
    for path in sorted(found - set(result.files)):
        raise BundleError(f"{folder}/{path} is not listed in result.json")
    for path, entry in result.files.items():
        try:
            safe_relative_path(path)
        except BundleRefused as error:
            raise BundleError(f"{folder}: {error}") from error
        if path not in found:
            raise BundleError(f"{folder}/{path} is listed in result.json but is not there")
        size = (folder / path).stat().st_size
        if size != entry.size_bytes or size > MAX_RESULT_FILE_BYTES:
            raise BundleError(f"{folder}/{path} has {size} bytes, not {entry.size_bytes}")
        if digest_file(folder / path) != entry.digest:
            raise BundleError(f"{folder}/{path} does not have the digest in result.json")


def _check_items(
    manifest: Path, result: ResultDocument, bundle: JobBundle, samples: Sequence[Sample]
) -> None:
    asked = {item.item_id: item for item in bundle.items}
    answered = [item.item_id for item in result.items]
    if sorted(answered) != sorted(asked):
        missing, extra = sorted(set(asked) - set(answered)), sorted(set(answered) - set(asked))
        raise BundleError(f"{manifest}: items missing {missing}, not asked for {extra}")
    if {sample.item_id for sample in samples} - set(asked):
        raise BundleError(f"{manifest}: samples.jsonl names items that were not asked for")
    for outcome in result.items:
        item = asked[outcome.item_id]
        digests = (outcome.definition_digest, outcome.workload_digest, outcome.solution_digest)
        if digests != (item.definition.digest, item.workload.digest, item.solution.digest):
            raise BundleError(f"{manifest}: {item.item_id} answers other documents than asked for")
        if outcome.reproduces != item.reproduces:
            raise BundleError(f"{manifest}: {item.item_id} reproduces another run than asked for")
        unknown = {entry.code for entry in outcome.reasons + outcome.notes} - set(REASONS)
        if unknown:
            raise BundleError(f"{manifest}: {item.item_id} has unknown reasons {sorted(unknown)}")
        if outcome.status is Status.PASSED and result.state is not State.INFRASTRUCTURE_ERROR:
            _check_statistics(manifest, outcome, samples)
        if outcome.status is not Status.PASSED and not outcome.reasons:
            raise BundleError(f"{manifest}: {item.item_id} is {outcome.status.value} for no reason")


def _check_statistics(manifest: Path, outcome: ItemOutcome, samples: Sequence[Sample]) -> None:
    if outcome.correctness is None:
        raise BundleError(f"{manifest}: {outcome.item_id} passed without a comparison")
    series = (
        ("statistics", outcome.statistics, "candidate", "device"),
        ("wall_statistics", outcome.wall_statistics, "candidate", "wall"),
        ("reference_statistics", outcome.reference_statistics, "reference", "device"),
    )
    for name, statistics, subject, mode in series:
        values = [
            sample.device_ns if mode == "device" else sample.wall_ns or 0
            for sample in samples
            if (sample.item_id, sample.subject, sample.mode) == (outcome.item_id, subject, mode)
        ]
        if statistics is None:
            raise BundleError(f"{manifest}: {outcome.item_id} passed without {name}")
        found = (len(values), median(values) if values else None)
        if found != (statistics.samples, statistics.median):
            raise BundleError(
                f"{manifest}: {outcome.item_id}: {name} says {statistics.samples} samples with "
                f"median {statistics.median}; samples.jsonl gives {found[0]} and {found[1]}"
            )


def _first(error: ValidationError) -> str:
    """The first of a document's faults in one line."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else fault["msg"]


def _lines(path: Path, model: type[Sample]) -> list[Sample]:
    found = []
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                found.append(model.model_validate_json(line))
            except ValidationError as error:
                raise BundleError(f"{path}:{number}: {_first(error)}") from error
    return found


def _object(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BundleError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BundleError(f"{path} is not an object")
    return document


def _objects(path: Path) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            document = json.loads(line)
        except ValueError as error:
            raise BundleError(f"{path}:{number} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise BundleError(f"{path}:{number} is not an object")
        found.append(document)
    return found
