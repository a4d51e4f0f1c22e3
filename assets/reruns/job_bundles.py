"""Job bundles, written and read back: the way of a request to a GPU.

Standard library only, so that a GPU machine without the rest of the project can make bundles too
(`bench/rerun_worker.py`). The format and its checks are the worker's own (`worker/job.py`).
"""

import json
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from assets.reruns.worker.job import (
    JOB_SCHEMA,
    BundleRefused,
    JobBundle,
    Limits,
    Protocol,
    bundle_id_of,
    canonical_json,
    digest_bytes,
    digest_file,
    load_bundle,
)

DEFAULT_SEED_COUNT = 3

Document = Mapping[str, Any] | bytes


class BundleError(Exception):
    """A bundle is not what it should be; the message names the path and what is wrong."""


@dataclass(frozen=True)
class BundleItem:
    """One measurement to put into a job bundle.

    Documents are given parsed, with their keys in their own order, or as the bytes to be kept.
    `tensors` maps each tensor file's
    name, as the workload spells it, to the file. `reproduces` is a published run's digest.
    """

    item_id: str
    definition: Document
    workload: Document
    solution: Document
    tensors: Mapping[str, Path] = field(default_factory=dict)
    reproduces: str | None = None


def write_bundle(
    folder: Path,
    items: Sequence[BundleItem],
    *,
    reason: str,
    protocol: Protocol | None = None,
    limits: Limits | None = None,
    seeds: Sequence[int] | None = None,
    nonce: str | None = None,
    created_at: datetime | None = None,
) -> JobBundle:
    """Write a job bundle that appears at `folder` by one rename, and read it back checked.

    Nonce, seeds and time are made fresh unless given. Raises `BundleError` when the worker would
    refuse what was asked for, `OSError` when files cannot be read or written.
    """
    if folder.exists():
        raise BundleError(f"{folder} already exists; choose a new folder for the bundle")
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        entries = [_write_item(staging, item) for item in items]
        document: dict[str, Any] = {
            "schema": JOB_SCHEMA,
            "nonce": nonce or secrets.token_hex(16),
            "created_at": _timestamp(created_at or datetime.now(timezone.utc)),
            "reason": reason,
            "protocol": (protocol or Protocol()).document(),
            "limits": asdict(limits or Limits()),
            "seeds": list(seeds) if seeds is not None else _fresh_seeds(),
            "items": entries,
            "files": _listing(staging),
        }
        document["bundle_id"] = bundle_id_of(document)
        (staging / "bundle.json").write_bytes(canonical_json(document) + b"\n")
        load_bundle(staging)
        staging.chmod(0o755)
        staging.rename(folder)
    except BundleRefused as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise BundleError(str(error)) from error
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return load_bundle(folder)


def read_bundle(folder: Path) -> JobBundle:
    """Read a job bundle with the worker's own checks; raises `BundleError`."""
    try:
        return load_bundle(folder)
    except BundleRefused as error:
        raise BundleError(f"{folder}: {error}") from error


def _write_item(staging: Path, item: BundleItem) -> dict[str, Any]:
    entry: dict[str, Any] = {"item_id": item.item_id, "reproduces": item.reproduces}
    for kind in ("definition", "workload", "solution"):
        document = getattr(item, kind)
        content = document if isinstance(document, bytes) else _in_own_order(document)
        digest = digest_bytes(content)
        path = f"{kind}s/{digest.removeprefix('sha256:')[:32]}.json"
        _write_once(staging / path, content)
        entry[kind] = {"path": path, "digest": digest}
    entry["tensors"] = []
    for name, source in sorted(item.tensors.items()):
        digest = digest_file(source)
        path = f"tensors/{digest.removeprefix('sha256:')[:32]}.safetensors"
        target = staging / path
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)
        entry["tensors"].append({"path": path, "digest": digest, "name": name})
    return entry


def _in_own_order(document: Mapping[str, Any]) -> bytes:
    """JSON that keeps the order of keys: a definition's inputs are passed in that order."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")


def _write_once(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(content)


def _listing(root: Path) -> dict[str, dict[str, Any]]:
    return {
        path.relative_to(root).as_posix(): {
            "digest": digest_file(path),
            "size_bytes": path.stat().st_size,
        }
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def _fresh_seeds() -> list[int]:
    return [secrets.randbelow(2**62) for _ in range(DEFAULT_SEED_COUNT)]


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
