"""What a machine lacks for a bundle, said in one sentence before anything starts.

Pure standard library: torch is looked for without being imported.
"""

import ctypes
import importlib.util
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from .isolation import clean_environment
from .job import Item, JobBundle
from .machine import Machine

_NO_CUDA = re.compile(r"^cuda\s*(:[^=]*)?=\s*None", re.MULTILINE)


def missing(bundle: JobBundle, machine: Machine, environment: Mapping[str, str]) -> str | None:
    """Why the bundle cannot be run on this machine; None when nothing speaks against it."""
    torch = importlib.util.find_spec("torch")
    if torch is None:
        return (
            "this Python has no torch: run the worker with an interpreter that can import it, "
            "or install it (pip install torch)"
        )
    if machine.kind == "cuda":
        if not has_driver():
            return "this machine has no NVIDIA driver: run on one with a GPU, or try --gpu cpu"
        if _without_cuda(torch.submodule_search_locations or ()):
            return "this torch was built without CUDA: install one with it, or try --gpu cpu"
    languages = {_language(bundle, item) for item in bundle.items}
    if languages == {"cuda"} and compiler(environment) is None:
        return "every solution of this bundle needs nvcc, which is not on the path (install CUDA)"
    return None


def warning(bundle: JobBundle, environment: Mapping[str, str]) -> str | None:
    """What some of the items will lack, where others can be measured."""
    count = sum(_language(bundle, item) == "cuda" for item in bundle.items)
    if count and compiler(environment) is None:
        return f"nvcc is not on the path: {count} of {len(bundle.items)} items cannot be built"
    return None


def compiler(environment: Mapping[str, str]) -> str | None:
    """Where nvcc lies, as child processes will see it."""
    return shutil.which("nvcc", path=clean_environment(environment, Path("/"), None)["PATH"])


def has_driver() -> bool:
    """Whether the CUDA driver's library is here and counts at least one device."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return not library.cuInit(0) and not library.cuDeviceGetCount(ctypes.byref(count))


def _without_cuda(folders: Sequence[str]) -> bool:
    for folder in folders:
        path = Path(folder) / "version.py"
        if path.is_file():
            return bool(_NO_CUDA.search(path.read_text(encoding="utf-8", errors="replace")))
    return False


def _language(bundle: JobBundle, item: Item) -> str:
    document = bundle.read_document(item.solution)
    spec = document.get("spec") if isinstance(document, dict) else None
    return str(spec.get("language", "")).lower() if isinstance(spec, dict) else ""
