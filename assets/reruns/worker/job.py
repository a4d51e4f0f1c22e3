"""Read a job bundle and refuse it unless every path, size and digest is as it says.

Holds the bundle's format, not what is done with it. Pure standard library; the project's own
`assets.reruns.bundles` uses the same checks, so that both sides refuse the same bundles.
"""

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

JOB_SCHEMA = "kernelindex-job-bundle/1"
PROTOCOL_NAME = "kernelindex-controlled-v1"
MAX_BUNDLE_JSON_BYTES = 16 * 1024 * 1024
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024**3
MAX_FILES = 20_000
MAX_ITEMS = 5_000
MAX_DEPTH = 64
MAX_LIMIT = 10**12
FOLDERS = ("definitions", "workloads", "solutions", "tensors")

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_POSITIVE = frozenset({"samples", "rounds", "candidates_at_once", "kept_calls"})
_ITEM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


class BundleRefused(Exception):  # noqa: N818 - the name says what happened
    """The bundle is not what it says it is; nothing of it was run."""


@dataclass(frozen=True)
class Protocol:
    """Parameters of `kernelindex-controlled-v1`; the defaults are the protocol's own."""

    samples: int = 200
    wall_samples: int = 50
    rounds: int = 10
    warmup_s: float = 0.5
    kept_calls: int = 6
    launch_runway_us: int = 200
    flush_factor: float = 2.0
    reference_budget_s: float = 20.0
    candidate_budget_s: float = 60.0
    candidates_at_once: int = 6

    @classmethod
    def from_document(cls, document: Any) -> "Protocol":
        """Build from the bundle's `protocol`; raise `BundleRefused` for what it does not know."""
        values = dict(_mapping(document, "protocol"))
        name = values.pop("name", None)
        if name != PROTOCOL_NAME:
            raise BundleRefused(f"protocol.name is {shown(name)}; this worker runs {PROTOCOL_NAME}")
        known = cls.__dataclass_fields__
        chosen: dict[str, Any] = {}
        for key, value in values.items():
            if key not in known:
                raise BundleRefused(f"protocol.{shown(key)} is no parameter of {PROTOCOL_NAME}")
            wanted = type(getattr(cls, key))
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise BundleRefused(f"protocol.{key} is {shown(value)}; it must be a number")
            if not (1 if key in _POSITIVE else 0) <= value <= 1_000_000:
                raise BundleRefused(f"protocol.{key} is {shown(value)}; out of bounds")
            if wanted is int and int(value) != value:
                raise BundleRefused(f"protocol.{key} is {value!r}; it must be a whole number")
            chosen[key] = wanted(value)
        return cls(**chosen)

    def document(self) -> dict[str, Any]:
        """The protocol as the result bundle repeats it: name and every parameter."""
        values = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return {"name": PROTOCOL_NAME, **values}


@dataclass(frozen=True)
class Limits:
    """Bounds of one run; times in seconds, sizes in bytes."""

    deadline_s: float = 3600.0
    per_run_timeout_s: float = 300.0
    max_log_bytes: int = 65536
    memory_bytes: int | None = None


@dataclass(frozen=True)
class FileReference:
    """One file of the bundle, by its path inside it."""

    path: str
    digest: str


@dataclass(frozen=True)
class TensorFile:
    """A tensor file and the path under which the workload names it."""

    path: str
    digest: str
    name: str


@dataclass(frozen=True)
class Item:
    """One measurement to make: a solution on a workload of a definition."""

    item_id: str
    definition: FileReference
    workload: FileReference
    solution: FileReference
    tensors: tuple[TensorFile, ...]
    reproduces: str | None


@dataclass(frozen=True)
class JobBundle:
    """A job bundle whose files were all checked."""

    root: Path
    bundle_id: str
    nonce: str
    created_at: str
    reason: str
    protocol: Protocol
    limits: Limits
    seeds: tuple[int, ...]
    items: tuple[Item, ...]
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def read_document(self, reference: FileReference) -> Any:
        """The JSON document of a definition, workload or solution."""
        return parse_json((self.root / reference.path).read_bytes(), reference.path)


def canonical_json(document: Any) -> bytes:
    """Sorted keys, no spaces, UTF-8; the bytes that digests are taken of."""
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8")


def digest_bytes(content: bytes) -> str:
    """`sha256:` and the hex digest of the content."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest_file(path: Path) -> str:
    """`sha256:` and the hex digest of a file's content, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return "sha256:" + digest.hexdigest()


def bundle_id_of(document: dict[str, Any]) -> str:
    """The digest of bundle.json without its own `bundle_id`."""
    rest = {key: value for key, value in document.items() if key != "bundle_id"}
    return digest_bytes(canonical_json(rest))


def parse_json(content: bytes, where: str) -> Any:
    """Parse JSON; raise `BundleRefused` naming the file when it does not parse.

    Refused too: what cannot be handled afterwards, as nesting beyond `MAX_DEPTH` and integers of
    thousands of digits.
    """
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleRefused(f"{where} is not JSON: {error}") from error
    if _is_deeper(document, MAX_DEPTH):
        raise BundleRefused(f"{where} is nested more than {MAX_DEPTH} levels deep")
    return document


def _is_deeper(document: Any, levels: int) -> bool:
    """Level by level, because what is too deep for the parser is too deep for recursion."""
    level = [document]
    for _ in range(levels + 1):
        inner = [value for value in level if isinstance(value, (dict, list))]
        if not inner:
            return False
        level = [
            part
            for value in inner
            for part in (value.values() if isinstance(value, dict) else value)
        ]
    return True


def shown(value: Any) -> str:
    """A value of a document as an error message shows it: one line, and not all of a long one."""
    text = ascii(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def safe_relative_path(path: Any) -> PurePosixPath:
    """A bundle path as path object; raise `BundleRefused` if it could leave the bundle."""
    if not isinstance(path, str) or not path or "\x00" in path or "\\" in path:
        raise BundleRefused(f"path {shown(path)} is not a plain relative path")
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path:
        raise BundleRefused(f"path {shown(path)} is absolute, not normal, or leaves the bundle")
    return pure


def load_bundle(root: Path) -> JobBundle:
    """Read and check a job bundle.

    Raises `BundleRefused` with a message that names the path and what is wrong with it: links,
    files that are not listed or not there, sizes or digests that differ, unknown schemas.
    """
    manifest = root / "bundle.json"
    _regular_file(manifest, "bundle.json", MAX_BUNDLE_JSON_BYTES)
    document = _mapping(parse_json(manifest.read_bytes(), "bundle.json"), "bundle.json")
    if document.get("schema") != JOB_SCHEMA:
        raise BundleRefused(
            f"bundle.json: schema is {shown(document.get('schema'))}; expected {JOB_SCHEMA}"
        )
    try:
        expected = bundle_id_of(document)
    except ValueError as error:
        raise BundleRefused(
            f"bundle.json holds a number that is not finite, or text that is not Unicode: {error}"
        ) from error
    if document.get("bundle_id") != expected:
        found = shown(document.get("bundle_id"))
        raise BundleRefused(f"bundle.json: bundle_id is {found}, its content gives {expected}")
    files = _check_files(root, document.get("files"))
    items = tuple(_item(entry, index, files) for index, entry in enumerate(_items(document)))
    ids = [item.item_id for item in items]
    if len(set(ids)) != len(ids):
        raise BundleRefused("bundle.json: two items have the same item_id")
    return JobBundle(
        root=root,
        bundle_id=expected,
        nonce=_text(document, "nonce"),
        created_at=_text(document, "created_at"),
        reason=_text(document, "reason"),
        protocol=Protocol.from_document(document.get("protocol")),
        limits=_limits(document.get("limits")),
        seeds=_seeds(document.get("seeds")),
        items=items,
        files=files,
    )


def _check_files(root: Path, listed: Any) -> dict[str, dict[str, Any]]:
    files = _mapping(listed, "bundle.json: files")
    if len(files) > MAX_FILES:
        raise BundleRefused(f"bundle.json lists {len(files)} files; at most {MAX_FILES}")
    found = walk(root)
    found.discard("bundle.json")
    for path in sorted(found - set(files)):
        raise BundleRefused(f"{path} is in the bundle but bundle.json does not list it")
    for path in sorted(files):
        pure = safe_relative_path(path)
        if pure.parts[0] not in FOLDERS or len(pure.parts) < 2:
            raise BundleRefused(f"{path} lies outside {', '.join(FOLDERS)}")
        if path not in found:
            raise BundleRefused(f"{path} is listed in bundle.json but is not there")
        entry = _mapping(files[path], f"bundle.json: files.{path}")
        digest, size = entry.get("digest"), entry.get("size_bytes")
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            raise BundleRefused(f"{path}: digest {shown(digest)} is not sha256:<64 hex digits>")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise BundleRefused(f"{path}: size_bytes {shown(size)} is not a size")
        limit = MAX_FILE_BYTES if pure.parts[0] == "tensors" else MAX_DOCUMENT_BYTES
        actual = _regular_file(root / path, path, limit)
        if actual != size:
            raise BundleRefused(f"{path} has {actual} bytes; bundle.json says {shown(size)}")
        if digest_file(root / path) != digest:
            raise BundleRefused(f"{path} does not have the digest that bundle.json gives")
    return files


def walk(root: Path) -> set[str]:
    """Every file below a folder, by its path there; raises `BundleRefused` for other kinds."""
    found: set[str] = set()
    for folder, folders, names in os.walk(root, followlinks=False):
        for name in folders + names:
            path = Path(folder) / name
            relative = path.relative_to(root).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise BundleRefused(f"{relative} is a link; a bundle holds plain files only")
            if stat.S_ISREG(mode):
                found.add(relative)
            elif not stat.S_ISDIR(mode):
                raise BundleRefused(f"{relative} is neither a file nor a folder")
    return found


def _regular_file(path: Path, label: str, limit: int) -> int:
    try:
        status = path.lstat()
    except OSError as error:
        raise BundleRefused(f"{label} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise BundleRefused(f"{label} is not a plain file")
    if status.st_size > limit:
        raise BundleRefused(f"{label} has {status.st_size} bytes; at most {limit} are allowed")
    return status.st_size


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BundleRefused(f"{where} is not an object")
    return value


def _text(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BundleRefused(f"bundle.json: {key} is missing or empty")
    return value


def _items(document: dict[str, Any]) -> list[Any]:
    items = document.get("items")
    if not isinstance(items, list) or not items:
        raise BundleRefused("bundle.json: items is empty")
    if len(items) > MAX_ITEMS:
        raise BundleRefused(f"bundle.json: {len(items)} items; at most {MAX_ITEMS}")
    return items


def _item(entry: Any, index: int, files: dict[str, dict[str, Any]]) -> Item:
    where = f"bundle.json: items[{index}]"
    document = _mapping(entry, where)
    item_id = document.get("item_id")
    if not isinstance(item_id, str) or not _ITEM_ID.match(item_id):
        raise BundleRefused(
            f"{where}.item_id {shown(item_id)} is no plain name of up to 100 characters"
        )
    tensors = document.get("tensors", [])
    if not isinstance(tensors, list):
        raise BundleRefused(f"{where}.tensors is not a list")
    reproduces = document.get("reproduces")
    if reproduces is not None and not isinstance(reproduces, str):
        raise BundleRefused(f"{where}.reproduces is neither a digest nor null")
    return Item(
        item_id=item_id,
        definition=_reference(document.get("definition"), f"{where}.definition", files),
        workload=_reference(document.get("workload"), f"{where}.workload", files),
        solution=_reference(document.get("solution"), f"{where}.solution", files),
        tensors=tuple(_tensor(tensor, f"{where}.tensors", files) for tensor in tensors),
        reproduces=reproduces,
    )


def _reference(value: Any, where: str, files: dict[str, dict[str, Any]]) -> FileReference:
    entry = _mapping(value, where)
    path, digest = entry.get("path"), entry.get("digest")
    if not isinstance(path, str) or path not in files:
        raise BundleRefused(f"{where}.path {shown(path)} is not among the bundle's files")
    if digest != files[path]["digest"]:
        raise BundleRefused(f"{where}.digest differs from the digest of {path}")
    return FileReference(path, str(digest))


def _tensor(value: Any, where: str, files: dict[str, dict[str, Any]]) -> TensorFile:
    reference = _reference(value, where, files)
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise BundleRefused(f"{where}: the name under which the workload knows it is missing")
    return TensorFile(reference.path, reference.digest, name)


def _limits(value: Any) -> Limits:
    entry = _mapping(value, "bundle.json: limits")
    numbers: dict[str, float] = {}
    for key in ("deadline_s", "per_run_timeout_s", "max_log_bytes"):
        number = entry.get(key)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or number <= 0:
            raise BundleRefused(f"bundle.json: limits.{key} is {shown(number)}; it must be above 0")
        if number > MAX_LIMIT:
            raise BundleRefused(f"bundle.json: limits.{key} is above {MAX_LIMIT}")
        numbers[key] = number
    memory = entry.get("memory_bytes")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int)):
        raise BundleRefused("bundle.json: limits.memory_bytes is neither a whole number nor null")
    if memory is not None and not 0 < memory < 2**63:
        raise BundleRefused("bundle.json: limits.memory_bytes is not between 0 and 2^63")
    return Limits(
        deadline_s=float(numbers["deadline_s"]),
        per_run_timeout_s=float(numbers["per_run_timeout_s"]),
        max_log_bytes=int(numbers["max_log_bytes"]),
        memory_bytes=memory,
    )


def _seeds(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or len(value) > 100:
        raise BundleRefused("bundle.json: seeds must be 1 to 100 whole numbers")
    for seed in value:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise BundleRefused(f"bundle.json: seed {shown(seed)} is not between 0 and 2^63")
    if len(set(value)) != len(value):
        raise BundleRefused("bundle.json: seeds must differ from each other")
    return tuple(value)
