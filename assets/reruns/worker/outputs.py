"""What a call handed back: taken apart, looked at, copied out as raw bytes. Needs torch.

Nothing of the candidate's is trusted to describe itself: files hold bytes only, and shapes and
data types come from the definition.
"""

import contextlib
import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .documents import OutputSpec, size_bytes
from .inputs import same_bits, torch_dtype

_clone = torch.Tensor.clone
_contiguous = torch.Tensor.contiguous
_view = torch.Tensor.view
_fill = torch.Tensor.fill_
_detach = torch.Tensor.detach
_empty = torch.empty
_cpu = torch.Tensor.cpu
_to = torch.Tensor.to
_copy = torch.Tensor.copy_
_data_ptr = torch.Tensor.data_ptr
_open = open
_uint8 = torch.uint8

#: A value that no honest kernel leaves in an integer output by chance.
POISON_INTEGER = 85


class OutputProblem(Exception):  # noqa: N818
    """The outputs are not what the definition says; `code` is a reason code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def destination_buffers(outputs: Sequence[OutputSpec], device: torch.device) -> list[torch.Tensor]:
    """Fresh poisoned tensors for the outputs."""
    buffers = [_empty(spec.shape, dtype=torch_dtype(spec.dtype), device=device) for spec in outputs]
    for buffer in buffers:
        poison(buffer)
    return buffers


def poison(tensor: torch.Tensor) -> None:
    """Fill with NaN, or with a pattern where the data type has none."""
    if tensor.is_floating_point():
        _fill(tensor, float("nan"))
    else:
        _fill(tensor, POISON_INTEGER % 2 if tensor.dtype == torch.bool else POISON_INTEGER)


def poison_free_memory(outputs: Sequence[OutputSpec], device: torch.device) -> None:
    """Poison the memory that the allocator will hand out next for tensors of these sizes."""
    destination_buffers(outputs, device)


def as_list(value: Any, outputs: Sequence[OutputSpec]) -> list[Any]:
    """The outputs in the definition's order from a tensor, tuple, list or mapping by name.

    Raises `OutputProblem` (WRONG_OUTPUT_COUNT).
    """
    if isinstance(value, Mapping):
        missing = [spec.name for spec in outputs if spec.name not in value]
        if missing:
            raise OutputProblem("WRONG_OUTPUT_COUNT", f"Not in the mapping: {', '.join(missing)}.")
        return [value[spec.name] for spec in outputs]
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(values) != len(outputs):
        raise OutputProblem(
            "WRONG_OUTPUT_COUNT", f"{len(values)} values came back for {len(outputs)} outputs."
        )
    return values


def check(
    values: Sequence[Any], outputs: Sequence[OutputSpec], device: torch.device
) -> list[torch.Tensor]:
    """The values as plain tensors of the right shape, data type and device.

    Raises `OutputProblem` (LAZY_OUTPUT, WRONG_SHAPE, WRONG_DTYPE, WRONG_DEVICE,
    WRONG_OUTPUT_COUNT).
    """
    for value, spec in zip(values, outputs, strict=True):
        if not isinstance(value, torch.Tensor):
            raise OutputProblem(
                "WRONG_OUTPUT_COUNT", f"{spec.name!r} is {type(value).__name__}, not a tensor."
            )
        if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
            raise OutputProblem("LAZY_OUTPUT", f"{spec.name!r} is a {type(value).__name__}.")
        if value.layout != torch.strided:
            raise OutputProblem("WRONG_SHAPE", f"{spec.name!r} is not a dense tensor.")
        if tuple(value.shape) != spec.shape:
            raise OutputProblem(
                "WRONG_SHAPE",
                f"{spec.name!r} is {list(value.shape)}, the definition says {list(spec.shape)}.",
            )
        if value.dtype != torch_dtype(spec.dtype):
            raise OutputProblem(
                "WRONG_DTYPE",
                f"{spec.name!r} is {value.dtype}, the definition says {spec.dtype}.",
            )
        if value.device.type != device.type:
            raise OutputProblem("WRONG_DEVICE", f"{spec.name!r} lies on {value.device}.")
    return [_detach(value) for value in values]


def aliased(tensors: Sequence[torch.Tensor], inputs: Mapping[str, Any]) -> list[str]:
    """Names of inputs whose memory one of the tensors shares."""
    held = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and value.numel():
            held[value.untyped_storage().data_ptr()] = name
    storages = [tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()]
    return sorted({held[pointer] for pointer in storages if pointer in held})


def snapshot(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies made in stream order, without waiting for anything else on the device."""
    return [_clone(tensor) for tensor in tensors]


def reserve_host_memory(outputs: Sequence[OutputSpec], device: torch.device) -> None:
    """Have torch allocate what `snapshot_to_host` will need, which can take long.

    Nothing is held meanwhile: a tensor of the harness's can be found by a solution.
    """
    for spec in outputs:
        _host_memory(spec.shape, torch_dtype(spec.dtype), device)


def snapshot_to_host(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies made in stream order, for which no multiprocessor of the device is needed."""
    return [
        _copy(_host_memory(tensor.shape, tensor.dtype, tensor.device), tensor, non_blocking=True)
        for tensor in tensors
    ]


def _host_memory(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    # The device's copy engine writes to pinned memory by itself.
    return _empty(shape, dtype=dtype, pin_memory=device.type == "cuda")


def on_device(tensors: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """The tensors on a device."""
    return [_to(tensor, device) for tensor in tensors]


def same(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    """Whether all tensors hold the same bytes."""
    return all(
        same_bits(_contiguous(one), _contiguous(other))
        for one, other in zip(left, right, strict=True)
    )


def write(tensors: Sequence[torch.Tensor], folder: Path, name: str) -> list[str]:
    """Write each tensor's raw bytes to a file of its own and return the file names."""
    names = []
    for number, tensor in enumerate(tensors):
        path = folder / f"{name}-{number}.bin"
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        flat = _cpu(_view(_view(_contiguous(tensor), -1), _uint8))
        with _open(path, "xb") as stream:
            if flat.numel():
                # The tensor's memory as it is: no pickling, and numpy may not be installed.
                stream.write((ctypes.c_char * flat.numel()).from_address(_data_ptr(flat)))
        names.append(path.name)
    return names


def read(path: Path, spec: OutputSpec, device: torch.device) -> torch.Tensor:
    """Read a written output back; raises `ValueError` when the file is not of the right size."""
    expected = size_bytes(spec.shape, spec.dtype)
    if path.is_symlink() or not path.is_file() or path.stat().st_size != expected:
        raise ValueError(f"{path.name} is no plain file of {expected} bytes")
    if not expected:
        return torch.empty(spec.shape, dtype=torch_dtype(spec.dtype), device=device)
    flat = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return flat.to(device).view(torch_dtype(spec.dtype)).reshape(spec.shape)
