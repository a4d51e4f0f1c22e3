"""Compile every cuda solution of a bundle once, several at a time, before the GPU is locked.

Each build runs in a child process of its own. A build cache is for trying the worker out: whoever
can write to it decides what is measured, so nothing that shall be evidence may use one. Pure
standard library.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .codes import reason
from .processes import Child, ChildFailed, ChildRefused, Nursery
from .subjects import Build, Candidate
from .verdict import reason_of_failure

_FILE_BYTES = 4 << 30


def build_all(
    candidates: Sequence[Candidate],
    nursery: Nursery,
    settings: Mapping[str, Any],
    scratch: Path,
    timeout_s: float,
    cache: Path | None,
) -> dict[str, Build]:
    """Build libraries by solution digest; candidates whose build failed are told why."""
    waiting: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.solution and candidate.solution.language == "cuda" and not candidate.reasons:
            waiting.setdefault(candidate.item.solution.digest, []).append(candidate)
    builds = _cached(list(waiting), cache, scratch)
    for digest in builds:
        for candidate in waiting[digest]:
            candidate.notes.append(reason("CACHED_BUILD"))
    digests = [digest for digest in waiting if digest not in builds]
    at_once = max(1, (os.cpu_count() or 1) // 4)
    for start in range(0, len(digests), at_once):
        running: dict[str, Child] = {}
        for number, digest in enumerate(digests[start : start + at_once], start):
            folder = scratch / f"build-{number}"
            folder.mkdir(mode=0o700)
            running[digest] = nursery.start(
                waiting[digest][0].log,
                {**settings, "folder": str(folder), "file_bytes": _FILE_BYTES},
            )
            running[digest].send("build", solution=vars(waiting[digest][0].solution))
        for digest, child in running.items():
            build = _receive(child, waiting[digest], timeout_s)
            if build is not None:
                builds[digest] = build
                _keep(digest, build, cache)
    return builds


def _receive(child: Child, candidates: Sequence[Candidate], timeout_s: float) -> Build | None:
    try:
        values = child.receive(timeout_s).values
        return Build(str(values["module"]), str(values["library"]))
    except ChildFailed as error:
        for candidate in candidates:
            if isinstance(error, ChildRefused):
                with candidate.log.open("a", encoding="utf-8") as log:
                    log.write(error.detail + "\n")
            candidate.fail(reason_of_failure(error))
        return None
    finally:
        child.close()


def _entry(digest: str, cache: Path) -> Path:
    return cache / hashlib.sha256(digest.encode("ascii")).hexdigest()[:32]


def _cached(digests: Sequence[str], cache: Path | None, scratch: Path) -> dict[str, Build]:
    found: dict[str, Build] = {}
    for number, digest in enumerate(digests):
        entry = _entry(digest, cache) if cache else None
        if entry is None or not (entry / "build.json").is_file():
            continue
        names = json.loads((entry / "build.json").read_text(encoding="utf-8"))
        folder = scratch / f"cached-{number}"
        folder.mkdir(mode=0o700)
        library = shutil.copyfile(entry / names["file"], folder / names["file"])
        found[digest] = Build(names["module"], str(library))
    return found


def _keep(digest: str, build: Build, cache: Path | None) -> None:
    if cache is None:
        return
    entry, library = _entry(digest, cache), Path(build.library)
    entry.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, entry / library.name)
    names = {"module": build.module, "file": library.name}
    (entry / "build.json").write_text(json.dumps(names), encoding="utf-8")
