"""The files of a result bundle, read without trusting any of them.

Only the files of the format may be there, plain ones, within their sizes, with the digests that
`result.json` lists. What they claim is checked in `evidence/`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from assets.manifests.rejections import json_path
from assets.reruns.job_bundles import BundleError
from assets.reruns.result_documents import EnvironmentDocument, ResultDocument, Sample
from assets.reruns.worker.job import BundleRefused, JobBundle, digest_file, parse_json, walk
from assets.reruns.worker.results import RESULT_SCHEMA
from assets.traces.layout import printable

RESULT, SAMPLES, TRACES = "result.json", "samples.jsonl", "traces.jsonl"
ENVIRONMENT = "environment.json"
LOGS = "logs"

_Document = TypeVar("_Document", bound=BaseModel)
_MB = 1 << 20
_MAX_BYTES = {RESULT: 64 * _MB, ENVIRONMENT: 64 * _MB, SAMPLES: 1024 * _MB, TRACES: 512 * _MB}
_MAX_LOG_BYTES = 16 * _MB
_MAX_SAMPLE_BYTES = 4096
_MAX_TRACE_BYTES = 64 * _MB


@dataclass(frozen=True)
class ResultFiles:
    """What stands in the files of a result bundle beside `result.json`."""

    environment: EnvironmentDocument
    samples: tuple[Sample, ...]
    traces: tuple[dict[str, Any], ...]


def read_document(folder: Path) -> ResultDocument:
    """Read `result.json`; raises `BundleError`."""
    return _document(folder / RESULT, ResultDocument, RESULT_SCHEMA)


def read_files(folder: Path, result: ResultDocument, bundle: JobBundle) -> ResultFiles:
    """Read every other file of a result bundle for a job.

    Raises:
        BundleError: a file is missing, unlisted, of another kind, too large, changed, or does not
            hold what it should; the message names it, and the line or JSON path.
    """
    _check_listing(folder, result, bundle)
    return ResultFiles(
        environment=_document(folder / ENVIRONMENT, EnvironmentDocument, "environment"),
        samples=tuple(_samples(folder / SAMPLES)),
        traces=tuple(_traces(folder / TRACES)),
    )


def log_path(item_id: str) -> str:
    """Where the log of an item lies in a result bundle."""
    return f"{LOGS}/{item_id}.txt"


def read_log(path: Path) -> str:
    """The log of one item; raises `BundleError` where it is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path} is not UTF-8: {error}") from error


def _check_listing(folder: Path, result: ResultDocument, bundle: JobBundle) -> None:
    logs = {log_path(item.item_id) for item in bundle.items}
    expected = {SAMPLES, TRACES, ENVIRONMENT} | logs
    for path in sorted(expected - set(result.files)):
        raise BundleError(f"{folder}/{RESULT} does not list {path}")
    for path in sorted(set(result.files) - expected):
        raise BundleError(f"{folder}/{RESULT} lists {printable(path)}, which no result has")
    try:
        found = walk(folder) - {RESULT}
    except BundleRefused as error:
        raise BundleError(f"{folder}: {error}") from error
    for path in sorted(found - expected):
        raise BundleError(f"{folder}/{printable(path)} is not listed in {RESULT}")
    for place in sorted(folder.rglob("*/")):
        path = place.relative_to(folder).as_posix()
        if path not in {LOGS, *expected}:
            raise BundleError(f"{folder}/{printable(path)} is a folder that no result has")
    for path in sorted(expected):
        if path not in found:
            raise BundleError(f"{folder}/{path} is listed in {RESULT} but is not there as a file")
        limit = _MAX_LOG_BYTES if path in logs else _MAX_BYTES[path]
        if path in logs:
            limit = min(limit, bundle.limits.max_log_bytes)
        size = (folder / path).stat().st_size
        entry = result.files[path]
        if size > limit:
            raise BundleError(f"{folder}/{path} has {size} bytes; at most {limit} are allowed")
        if size != entry.size_bytes:
            raise BundleError(f"{folder}/{path} has {size} bytes, not {entry.size_bytes}")
        if digest_file(folder / path) != entry.digest:
            raise BundleError(f"{folder}/{path} does not have the digest in {RESULT}")
        if path in logs:
            read_log(folder / path)


def _document(path: Path, model: type[_Document], kind: str) -> _Document:
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{path.parent}: there is no {path.name}")
    if path.stat().st_size > _MAX_BYTES[path.name]:
        raise BundleError(f"{path} is larger than {_MAX_BYTES[path.name]} bytes")
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise BundleError(f"{path} is no {kind}: {_first(error)}") from error


def _samples(path: Path) -> Iterator[Sample]:
    for number, line in _lines(path, _MAX_SAMPLE_BYTES):
        try:
            yield Sample.model_validate_json(line)
        except ValidationError as error:
            raise BundleError(f"{path}:{number}: {_first(error)}") from error


def _traces(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in _lines(path, _MAX_TRACE_BYTES):
        try:
            document = parse_json(line, f"{path}:{number}")
        except BundleRefused as error:
            raise BundleError(str(error)) from error
        if not isinstance(document, dict):
            raise BundleError(f"{path}:{number} is not an object")
        yield document


def _lines(path: Path, limit: int) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(limit + 1):
            number += 1
            if len(line) > limit:
                raise BundleError(f"{path}:{number} has more than {limit} bytes")
            yield number, line


def _first(error: ValidationError) -> str:
    """The first of a document's faults in one line."""
    fault = error.errors(include_url=False, include_input=False)[0]
    path = json_path(fault["loc"])
    return f"{printable(path)}: {printable(fault['msg'])}"
