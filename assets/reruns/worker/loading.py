"""Bring a solution's sources to a callable: write them out, build what needs building, import.

Runs in child processes only. Building (`build_extension`) happens in a process of its own, so
that the compiler's machinery is not in the process that is measured. Needs torch.
"""

import importlib.util
import os
import shutil
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from .documents import Solution

MAX_TRACEBACK_CHARACTERS = 20_000

#: Compute capabilities whose own instructions need the architecture's `a` variant.
_ARCHITECTURE_SPECIFIC = {"9.0", "10.0", "10.3", "12.0"}


class LoadFailed(Exception):  # noqa: N818
    """A solution could not be built or loaded; `code` is a reason code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def write_sources(sources: Iterable[tuple[str, str]], folder: Path) -> None:
    """Write source files below `folder`; their paths were checked by `solution_of`."""
    for path, content in sources:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")


def load_python(folder: Path, entry_file: str, entry_function: str) -> Any:
    """Import a Python or Triton entry file and return its entry function."""
    path = folder / entry_file
    for place in {str(path.parent), str(folder)}:
        sys.path.insert(0, place)
    return _load_module(path, path.stem, entry_function, folder)


def load_extension(library: Path, module: str, entry_function: str) -> Any:
    """Import a built extension and return its entry function."""
    return _load_module(library, module, entry_function, library.parent)


def _load_module(path: Path, name: str, entry_function: str, folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadFailed("ENTRY_POINT_MISSING", f"{path.name} is nothing that Python can import.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        own = any(folder.rglob(f"{missing}.py")) or (folder / missing).exists()
        raise LoadFailed("IMPORT_FAILED" if own else "MISSING_DEPENDENCY", last_lines()) from error
    except BaseException as error:
        raise LoadFailed("IMPORT_FAILED", last_lines()) from error
    function = getattr(module, entry_function, None)
    if not callable(function):
        raise LoadFailed("ENTRY_POINT_MISSING", f"{path.name} has no function {entry_function!r}.")
    return function


def build_extension(
    solution: Solution, folder: Path, cuda: bool, capability: str | None
) -> tuple[str, str]:
    """Compile a cuda solution with torch's extension builder.

    `capability` is the GPU's, like 9.0; without it, torch is asked, which takes a GPU context.

    Returns the module name and the library's path. Raises `LoadFailed` (UNSUPPORTED_BINDING,
    TOOLCHAIN_MISSING, BUILD_FAILED).
    """
    text = "\n".join(content for _, content in solution.sources)
    if (solution.binding or "torch") != "torch" or "tvm::ffi" in text or "tvm/ffi" in text:
        raise LoadFailed("UNSUPPORTED_BINDING", f"The binding is {solution.binding or 'tvm-ffi'}.")
    if "PYBIND11_MODULE" not in text and "TORCH_LIBRARY" not in text:
        raise LoadFailed("UNSUPPORTED_BINDING", "No source holds a PYBIND11_MODULE.")
    if cuda:
        _choose_toolkit(capability)
    from torch.utils import cpp_extension

    write_sources(solution.sources, folder)
    suffixes = (".cu", ".cpp", ".cc", ".cxx", ".c")
    files = [str(folder / path) for path, _ in solution.sources if path.endswith(suffixes)]
    if any(path.endswith(".cu") for path in files) and shutil.which("nvcc") is None:
        raise LoadFailed("TOOLCHAIN_MISSING", "nvcc is not on the path.")
    name = "kernelindex_candidate"
    build = folder / "build"
    build.mkdir(exist_ok=True)
    try:
        cpp_extension.load(
            name=name,
            sources=files,
            extra_include_paths=[str(folder)],
            extra_cflags=["-O3"],
            extra_cuda_cflags=["-O3"],
            build_directory=str(build),
            with_cuda=cuda,
            verbose=True,
        )
    except BaseException as error:
        missing = "ninja" in str(error).lower() and "required" in str(error).lower()
        raise LoadFailed("TOOLCHAIN_MISSING" if missing else "BUILD_FAILED", str(error)) from error
    library = next(iter(sorted(build.glob(f"{name}*.so"))), None)
    if library is None:
        raise LoadFailed("BUILD_FAILED", "The build left no library.")
    return library.stem.split(".")[0], str(library)


def _choose_toolkit(capability: str | None) -> None:
    """Name the toolkit beside nvcc, and the one architecture that is here."""
    nvcc = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    places += [str(Path(nvcc).resolve().parents[1])] if nvcc else []
    for place in [*places, "/usr/local/cuda"]:
        if place and (Path(place) / "include" / "cuda_runtime.h").is_file():
            os.environ["CUDA_HOME"] = place
            break
    if capability is None:
        capability = "{}.{}".format(*torch.cuda.get_device_capability(0))
    variant = "a" if capability in _ARCHITECTURE_SPECIFIC else ""
    os.environ["TORCH_CUDA_ARCH_LIST"] = capability + variant


def last_lines() -> str:
    """The traceback being handled, its end if it is long."""
    return traceback.format_exc()[-MAX_TRACEBACK_CHARACTERS:]
