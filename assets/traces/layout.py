"""The layout of a dataset: which paths are wanted, what they hold, whose they are.

Layout of the published dataset (README of flashinfer-ai/flashinfer-trace):
`definitions/<op_type>/<name>.json`, `workloads/<op_type>/<definition>.jsonl`,
`solutions/<author>/<op_type>/<definition>/<name>.json`,
`traces/<author>/<op_type>/<definition>.jsonl`, `blob/workloads/**.safetensors`.
Earlier copies have no author folders, keep workloads under `traces/workloads/`, or gather
documents in one `definitions.json`. Pure path arithmetic: nothing here touches a disk.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from assets.traces.errors import DatasetError
from assets.traces.untrusted_text import visible_line

DocumentKind = Literal["definition", "workload", "solution", "trace"]

MAX_PATH_BYTES = 1024
MAX_COMPONENT_BYTES = 255
DOCUMENT_SUFFIXES = (".json", ".jsonl")
TENSOR_SUFFIX = ".safetensors"
IDENTITY_FILE = "dataset.json"
"""Names the dataset that a plain directory or archive is a copy of; not a document."""

_KIND_OF_FOLDER: dict[str, DocumentKind] = {
    "definitions": "definition",
    "workloads": "workload",
    "solutions": "solution",
    "traces": "trace",
}
_SUFFIXES_OF_FOLDER: dict[str, tuple[str, ...]] = {
    "definitions": (".json",),
    "workloads": (".jsonl", ".json"),
    "solutions": (".json",),
    "traces": (".jsonl", ".json"),
}
_COMPONENTS_BELOW_AUTHOR: dict[str, int] = {"solutions": 3, "traces": 2}
"""How many components follow the author: fewer means a layout without author folders."""


def known_folders() -> frozenset[str]:
    """The top-level folders of the published layout."""
    return frozenset({*_KIND_OF_FOLDER, "blob"})


def path_fault(path: str) -> str | None:
    """Why a listed path is refused, or None for a safe one.

    Safe is: relative, `/` between non-empty components, none of them `.` or `..`, no backslash,
    no control or unencodable character, at most 1024 bytes and 255 bytes a component.
    """
    try:
        size_bytes = len(path.encode())
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if not path:
        return "is empty"
    if size_bytes > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if path.startswith("/") or path[1:2] == ":":
        return "is absolute"
    if "\\" in path:
        return "has a backslash"
    if not path.isprintable():
        return "has control or unprintable characters"
    for component in path.split("/"):
        if not component:
            return "has an empty component"
        if component in (".", ".."):
            return f"has the component {component!r}"
        if len(component.encode()) > MAX_COMPONENT_BYTES:
            return f"has a component longer than {MAX_COMPONENT_BYTES} bytes"
    return None


def printable(path: str) -> str:
    """A path as it may stand in a message: unprintable characters escaped, not too long."""
    shown = visible_line(path)
    return shown if len(shown) <= 200 else shown[:200] + "…"


def is_wanted(path: str, *, with_tensors: bool = False) -> bool:
    """Whether a path of the published layout is pulled."""
    folder, _, rest = path.partition("/")
    if not rest:
        return False
    if folder == "blob":
        return with_tensors and path.endswith(TENSOR_SUFFIX)
    return path.endswith(_SUFFIXES_OF_FOLDER.get(folder, ()))


def is_wanted_locally(path: str, *, with_tensors: bool = False) -> bool:
    """Whether a path of a local copy is pulled: every JSON document outside hidden folders.

    Wider than `is_wanted`, so that documents of earlier or unknown layouts are read and judged
    rather than overlooked.
    """
    if any(_is_hidden(component) for component in path.split("/")):
        return False
    if path.endswith(TENSOR_SUFFIX):
        return with_tensors
    return path.endswith(DOCUMENT_SUFFIXES) and path != IDENTITY_FILE


def _is_hidden(component: str) -> bool:
    return component.startswith(".") and component not in (".", "..")


def kind_of(path: str) -> DocumentKind | None:
    """What a path's place says it holds; None where only its content can tell."""
    folder, rest = _known_folder(path)
    if folder is None:
        stem, _, suffix = path.rpartition("/")[2].partition(".")
        known_suffixes = {"json", "jsonl"}
        return _KIND_OF_FOLDER.get(stem) if suffix in known_suffixes else None
    if folder == "traces" and rest[0] == "workloads" and len(rest) > 1:
        return "workload"
    return _KIND_OF_FOLDER[folder]


def author_of(path: str) -> str | None:
    """The author folder that a solution or trace lies in, if its layout has author folders."""
    folder, rest = _known_folder(path)
    if folder is None or kind_of(path) == "workload":
        return None
    below = _COMPONENTS_BELOW_AUTHOR.get(folder)
    return rest[0] if below is not None and len(rest) > below else None


def root_of(path: str) -> str:
    """What stands before the known folder: `run_1/` of `run_1/traces/ann/gemm/d.jsonl`.

    Several datasets may lie in one directory; documents of one root belong together. A file that
    is named after its kind (`definitions.json`) lies in the root itself.
    """
    *folders, _ = path.split("/")
    for position, folder in enumerate(folders):
        if folder in _KIND_OF_FOLDER:
            return "".join(f"{name}/" for name in folders[:position])
    return "".join(f"{name}/" for name in folders) if kind_of(path) else ""


def roots_of(paths: Iterable[str]) -> frozenset[str]:
    """The roots of the files whose places say what they hold."""
    return frozenset(root_of(path) for path in paths if kind_of(path) is not None)


def world_of(path: str, roots: Collection[str]) -> str:
    """The root that a path belongs to; that of a file in no known folder is the nearest above."""
    if kind_of(path) is not None:
        return root_of(path)
    above = [root for root in roots if path.startswith(root)]
    return max(above, key=len, default="")


def of_authors(paths: Iterable[str], authors: Sequence[str] | None) -> list[str]:
    """Paths of the authors asked for, with every definition and workload; None asks for all.

    Raises `DatasetError` with the known authors when one is asked for that has no folder.
    """
    listed = list(paths)
    if authors is None:
        return listed
    known = {author for path in listed if (author := author_of(path)) is not None}
    check_authors(authors, known)
    wanted = set(authors)
    return [
        path
        for path in listed
        if (author := author_of(path)) in wanted
        or (author is None and kind_of(path) not in ("solution", "trace"))
    ]


def check_authors(authors: Sequence[str], known: Collection[str]) -> None:
    """Raise `DatasetError` listing the known authors if one asked for is not among them."""
    unknown = sorted(set(authors) - set(known))
    if unknown:
        names = ", ".join(sorted(known)) or "none: this dataset has no author folders"
        raise DatasetError(f"no author {', '.join(map(repr, unknown))} here; authors are {names}")


def _known_folder(path: str) -> tuple[str | None, list[str]]:
    """The first folder of a known name and the components below it."""
    *folders, name = path.split("/")
    for position, folder in enumerate(folders):
        if folder in _KIND_OF_FOLDER:
            return folder, [*folders[position + 1 :], name]
    return None, []
