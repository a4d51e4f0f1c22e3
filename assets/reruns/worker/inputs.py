"""Make a call's inputs from a seed, the same in every process of one device, and check them after.

A call's contents are written into fixed buffers: random inputs in full before the cache is
flushed, then one short block of each again after the flush, right before the clock starts. A
candidate that starts early on a stream of its own, or that knows an input by its address, works
on stale contents and gets those rows wrong. Needs torch.
"""

import json
import struct
from pathlib import Path
from typing import Any

import torch

from .documents import DocumentError, InputSpec, Problem

#: Elements that are written after the flush: few enough to leave the L2 cache cold.
LATE_BLOCK_ELEMENTS = 4096
FLOAT8_MAX = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}

# Taken before any candidate's code is loaded, so that patching torch's names changes nothing.
_normal = torch.Tensor.normal_
_random = torch.Tensor.random_
_copy = torch.Tensor.copy_
_clamp = torch.Tensor.clamp_
_empty = torch.empty
_equal = torch.equal
_view = torch.Tensor.view
_Generator = torch.Generator
_manual_seed = torch.Generator.manual_seed


def torch_dtype(name: str) -> torch.dtype:
    """The torch data type of that name."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def read_safetensors(path: Path, key: str) -> tuple[list[int], str, bytes]:
    """Shape, data type code and raw bytes of one tensor of a safetensors file.

    Format: 8 bytes of little-endian header length, a JSON header with `data_offsets`, the data.
    Raises `DocumentError` (MISSING_TENSOR) for pointers, damaged files and missing keys.
    """
    with path.open("rb") as stream:
        start = stream.read(8)
        if start.startswith(b"version "):
            raise DocumentError("MISSING_TENSOR", f"{path.name} is a Git LFS pointer.")
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= 100_000_000:
            raise DocumentError("MISSING_TENSOR", f"{path.name} is no safetensors file.")
        try:
            entry = json.loads(stream.read(length))[key]
            shape, dtype = [int(extent) for extent in entry["shape"]], str(entry["dtype"])
            begin, end = entry["data_offsets"]
        except (ValueError, KeyError, TypeError) as error:
            raise DocumentError("MISSING_TENSOR", f"{path.name} has no tensor {key!r}.") from error
        stream.seek(8 + length + begin)
        content = stream.read(end - begin)
    if len(content) != end - begin:
        raise DocumentError("MISSING_TENSOR", f"{path.name} ends before tensor {key!r} does.")
    return shape, dtype, content


SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


class InputBuffers:
    """The inputs of a problem on one device, at fixed addresses, with contents that change."""

    def __init__(self, problem: Problem, device: torch.device) -> None:
        """Allocate and load; raises `DocumentError` when a tensor file does not fit."""
        self.specs = problem.inputs
        self.device = device
        self._fixed: dict[str, Any] = {}
        for spec in self.specs:
            if spec.source == "tensor":
                self._fixed[spec.name] = _load(spec, device)
        self.generator = _Generator(device=device)
        self.values: dict[str, Any] = {}
        self.allocate()

    @property
    def varied(self) -> bool:
        """Whether any input's contents change with the seed."""
        return any(spec.source == "random" for spec in self.specs)

    def allocate(self) -> None:
        """Take new memory for every tensor input."""
        self.values = {
            spec.name: spec.value
            if spec.source == "scalar"
            else _empty(spec.shape, dtype=torch_dtype(spec.dtype), device=self.device)
            for spec in self.specs
        }

    def arguments(self) -> list[Any]:
        """The values in the definition's order."""
        return [self.values[spec.name] for spec in self.specs]

    def fill(self, seed: int) -> None:
        """Write this seed's contents, all but the late blocks."""
        _manual_seed(self.generator, seed)
        for spec in self.specs:
            if spec.source == "random":
                _fill_random(self.values[spec.name], spec, self.generator)
            elif spec.source == "tensor":
                _copy(self.values[spec.name], self._fixed[spec.name])

    def fill_late(self, seed: int) -> None:
        """Write this seed's late blocks; always after `fill` of the same seed."""
        place = (seed * 0x9E3779B97F4A7C15) & (2**63 - 1)
        for number, spec in enumerate(self.specs):
            tensor = self.values[spec.name]
            if spec.source != "random" or tensor.numel() == 0:
                continue
            length = min(LATE_BLOCK_ELEMENTS, tensor.numel())
            start = (place >> number) % (tensor.numel() - length + 1)
            block = _view(tensor, -1)[start : start + length]
            _fill_random(block, spec, self.generator)

    def changed(self, seed: int) -> list[str]:
        """Names of the inputs that no longer hold this seed's contents, bit for bit."""
        held = self.values
        self.allocate()
        self.fill(seed)
        self.fill_late(seed)
        fresh, self.values = self.values, held
        return [
            spec.name
            for spec in self.specs
            if spec.source != "scalar" and not same_bits(held[spec.name], fresh[spec.name])
        ]


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two contiguous tensors of one shape and data type hold the same bytes."""
    if left.numel() == 0:
        return True
    return bool(_equal(_view(_view(left, -1), torch.uint8), _view(_view(right, -1), torch.uint8)))


def _fill_random(tensor: torch.Tensor, spec: InputSpec, generator: torch.Generator) -> None:
    """Standard normal floats; small non-negative integers; fair booleans."""
    if spec.dtype in FLOAT8_MAX:
        limit = FLOAT8_MAX[spec.dtype]
        wide = _empty(tensor.shape, dtype=torch.float32, device=tensor.device)
        _normal(wide, generator=generator)
        _copy(tensor, _clamp(wide, -limit, limit))
    elif tensor.is_floating_point():
        _normal(tensor, generator=generator)
    else:
        _random(tensor, 0, 2 if spec.dtype == "bool" else 100, generator=generator)


def _load(spec: InputSpec, device: torch.device) -> torch.Tensor:
    if spec.path is None or spec.key is None:
        raise DocumentError("MISSING_TENSOR", f"Input {spec.name!r} names no tensor.")
    try:
        shape, code, content = read_safetensors(Path(spec.path), spec.key)
    except OSError as error:
        raise DocumentError("MISSING_TENSOR", f"{spec.path}: {error.strerror}.") from error
    if tuple(shape) != spec.shape or SAFETENSORS_DTYPES.get(code) != spec.dtype:
        raise DocumentError(
            "UNSUPPORTED_WORKLOAD",
            f"Tensor {spec.key!r} is {code} {shape}; the definition says "
            f"{spec.dtype} {list(spec.shape)}.",
        )
    if not content:
        return torch.empty(spec.shape, dtype=torch_dtype(spec.dtype), device=device)
    flat = torch.frombuffer(bytearray(content), dtype=torch_dtype(spec.dtype))
    return flat.reshape(spec.shape).to(device)
