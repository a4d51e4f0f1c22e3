"""Notice that a candidate replaced functions that timing, comparison or tensors rest on.

The captured functions in `clocks.py` and `inputs.py` make most patches useless; this finds them
anyway, because a solution that patches a timer is not an honest one. Needs torch.
"""

import builtins
import io
import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

_WORKER_MODULES = (
    "calibration", "child", "clocks", "inputs", "integrity", "isolation", "loading", "nursery",
    "outputs", "referee", "runner",
)  # fmt: skip

_TORCH_TENSOR = (
    "clone", "copy_", "contiguous", "cpu", "to", "view", "normal_", "zero_", "fill_", "data_ptr",
    "untyped_storage", "is_contiguous", "element_size", "numel", "__eq__", "item", "all",
    "__torch_function__",
)  # fmt: skip
_TORCH = (
    "equal", "allclose", "isclose", "empty", "empty_like", "from_file", "isnan", "randn", "rand",
    "manual_seed", "Generator", "Tensor",
)  # fmt: skip
_TORCH_CUDA = (
    "Event", "synchronize", "current_stream", "set_stream", "empty_cache", "Stream",
    "default_stream", "_sleep", "is_available",
)  # fmt: skip
_TIME = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "sleep")
_BUILTINS = (
    "abs", "all", "any", "bool", "float", "getattr", "int", "isinstance", "len", "list", "max",
    "min", "open", "range", "round", "sorted", "str", "sum", "tuple", "type", "zip", "compile",
    "exec", "__build_class__",
)  # fmt: skip


def fingerprint() -> dict[str, tuple[int, int]]:
    """Identity of every watched function, and of its code where it is written in Python."""
    return {name: _identity(value) for name, value in _watched()}


def replaced(before: dict[str, tuple[int, int]]) -> list[str]:
    """Names whose function or code is another one than in `before`, and leftover modes."""
    now = fingerprint()
    changed = sorted(name for name, identity in before.items() if now.get(name) != identity)
    return changed + _modes()


def _modes() -> list[str]:
    """Active modes that intercept torch functions, except a plain default device."""
    found = []
    for kind in ("function", "dispatch"):
        length = getattr(torch._C, f"_len_torch_{kind}_stack", None)
        entry = getattr(torch._C, f"_get_{kind}_stack_at", None)
        for index in range(length() if length is not None else 0):
            mode = type(entry(index)).__name__ if entry is not None else "unknown"
            if mode != "DeviceContext":
                found.append(f"torch {kind} mode {mode}")
    return found


def _identity(value: Any) -> tuple[int, int]:
    code = value.__code__ if isinstance(value, FunctionType) else None
    return id(value), id(code)


def _watched() -> Iterator[tuple[str, Any]]:
    places: list[tuple[str, Any, tuple[str, ...]]] = [
        ("torch.Tensor", torch.Tensor, _TORCH_TENSOR),
        ("torch", torch, _TORCH),
        ("torch.cuda", torch.cuda, _TORCH_CUDA),
        ("torch.cuda.Event", torch.cuda.Event, ("record", "elapsed_time", "synchronize", "wait")),
        ("torch.cuda.Stream", torch.cuda.Stream, ("synchronize", "wait_stream", "record_event")),
        ("torch.testing", torch.testing, ("assert_close",)),
        ("time", time, _TIME),
        ("builtins", builtins, _BUILTINS),
        ("json", json, ("dumps", "loads")),
        ("os", os, ("write", "read", "open", "_exit", "fork")),
        ("socket.socket", socket.socket, ("send", "sendall", "recv")),
        ("io", io, ("open", "BytesIO")),
        ("random", random, ("Random",)),
        ("threading", threading, ("Thread",)),
    ]
    for prefix, holder, names in places:
        # A class attribute is taken from its __dict__ chain: binding would make new objects.
        for name in names:
            yield f"{prefix}.{name}", _attribute(holder, name)
    for short in _WORKER_MODULES:
        module = sys.modules.get(f"{__package__}.{short}")
        if module is not None:
            yield from _functions_of(short, module)


def _functions_of(short: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(module).items()):
        if callable(value) or isinstance(value, type):
            yield f"harness.{short}.{name}", value
        if isinstance(value, type) and value.__module__ == module.__name__:
            for method, function in sorted(vars(value).items()):
                if isinstance(function, FunctionType):
                    yield f"harness.{short}.{name}.{method}", function


def _attribute(holder: Any, name: str) -> Any:
    if isinstance(holder, type):
        for base in holder.__mro__:
            if name in vars(base):
                return vars(base)[name]
        return None
    return getattr(holder, name, None)
