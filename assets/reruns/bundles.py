"""Both ends of the way to a GPU and back: job bundles written, result bundles read and proven.

The formats are plain directories (`bundle.json`, `result.json` and what they list by digest).
Nothing here runs a solution, and nothing here needs torch. What a result means for a published
run is decided elsewhere. `job_bundles.py` holds the writing end, which needs no pydantic,
`result_files.py` the reading of each file, `evidence/` what must follow from the samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.reruns.evidence.claims import ItemClaims, SessionClaims
from assets.reruns.evidence.protocols import faults
from assets.reruns.job_bundles import BundleError, BundleItem, read_bundle, write_bundle
from assets.reruns.result_documents import EnvironmentDocument, ItemOutcome, ResultDocument, Sample
from assets.reruns.result_files import (
    RESULT,
    SAMPLES,
    ResultFiles,
    log_path,
    read_document,
    read_files,
    read_log,
)
from assets.reruns.worker.job import BundleRefused, Item, JobBundle, Limits, Protocol, shown
from assets.traces.layout import printable

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


@dataclass(frozen=True)
class ResultBundle:
    """A result bundle whose every file and claim was checked."""

    root: Path
    result: ResultDocument
    environment: EnvironmentDocument
    samples: tuple[Sample, ...]
    traces: tuple[dict[str, Any], ...]

    def log_of(self, item: ItemOutcome) -> str:
        """The log text of one item."""
        return read_log(self.root / log_path(item.item_id))


def read_result(folder: Path, bundle: JobBundle) -> ResultBundle:
    """Read a result bundle and check that it answers this job bundle, and proves what it claims.

    Checked: every file's kind, size and digest, and that no other file is there; bundle id, nonce,
    protocol and seeds; one outcome per item; and every value that follows from raw samples,
    calibration, documents and the recorded GPU, computed again by the rules of its protocol.
    Raises `BundleError`, which names the file and the JSON path.
    """
    try:
        result = read_document(folder)
        _check_answers(folder / RESULT, result, bundle)
        files = read_files(folder, result, bundle)
        _check_samples(folder / SAMPLES, files.samples, bundle)
        fault = next(faults(_claims(result, files, bundle)), None)
    except BundleRefused as error:
        raise BundleError(f"{bundle.root}: {error}") from error
    except OSError as error:
        raise BundleError(f"{error.filename or folder}: {error.strerror or error}") from error
    if fault is not None:
        raise BundleError(printable_line(f"{folder}/{fault.file}: {fault.path} {fault.message}"))
    return ResultBundle(
        root=folder,
        result=result,
        environment=files.environment,
        samples=files.samples,
        traces=files.traces,
    )


def printable_line(text: str) -> str:
    """A message of which a part came out of a file, as one line."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _check_answers(manifest: Path, result: ResultDocument, bundle: JobBundle) -> None:
    for name, found, expected in (
        ("bundle_id", result.bundle_id, bundle.bundle_id),
        ("nonce", result.nonce, bundle.nonce),
        ("protocol", result.protocol, bundle.protocol.document()),
        ("seeds", result.seeds, bundle.seeds),
    ):
        if found != expected:
            raise BundleError(
                f"{manifest}: {name} is {shown(found)}; the job bundle has {shown(expected)}"
            )
    asked = [item.item_id for item in bundle.items]
    answered = [item.item_id for item in result.items]
    if answered != asked:
        missing, extra = sorted(set(asked) - set(answered)), sorted(set(answered) - set(asked))
        raise BundleError(
            f"{manifest}: items are not those asked for, each once, in order; "
            f"missing {shown(missing)}, not asked for {shown(extra)}"
        )


def _check_samples(path: Path, samples: Sequence[Sample], bundle: JobBundle) -> None:
    others = {sample.item_id for sample in samples} - {item.item_id for item in bundle.items}
    if others:
        raise BundleError(f"{path} names {printable(min(others))}, which was not asked for")


def _claims(result: ResultDocument, files: ResultFiles, bundle: JobBundle) -> SessionClaims:
    samples: dict[str, list[Sample]] = {}
    for sample in files.samples:
        samples.setdefault(sample.item_id, []).append(sample)
    pairs = zip(bundle.items, result.items, strict=True)
    return SessionClaims(
        bundle=bundle,
        result=result,
        environment=files.environment,
        traces=files.traces,
        items=tuple(
            _item_claims(index, item, outcome, tuple(samples.get(item.item_id, ())), bundle)
            for index, (item, outcome) in enumerate(pairs)
        ),
    )


def _item_claims(
    index: int, item: Item, outcome: ItemOutcome, samples: tuple[Sample, ...], bundle: JobBundle
) -> ItemClaims:
    return ItemClaims(
        index=index,
        item=item,
        outcome=outcome,
        samples=samples,
        definition=bundle.read_document(item.definition),
        workload=bundle.read_document(item.workload),
        solution=bundle.read_document(item.solution),
    )
