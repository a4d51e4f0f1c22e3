"""Outputs that lie in a subject's own memory, as the subject describes them. Needs torch.

All of the description is hostile: what does not lie wholly in memory that was handed over, by
what the driver says of its size, is refused.
"""

from collections.abc import Sequence
from typing import Any

import torch

from .documents import OutputSpec, size_bytes
from .inputs import torch_dtype
from .shared_memory import HANDLE_BYTES, Driver, device_bytes

_MOST_HANDLES = 65_536


def mapped_outputs(
    driver: Driver,
    specs: Sequence[OutputSpec],
    handles: Sequence[Any],
    places: Sequence[Any],
    calls: int,
) -> list[list[torch.Tensor]]:
    """The outputs of each call.

    Raises `ValueError` for a description that is not sound, `SharingFailed` for memory that
    cannot be mapped.
    """
    if len(places) != calls or len(handles) > _MOST_HANDLES:
        raise ValueError("not one place for each captured call")
    blocks = []
    for handle in handles:
        content = bytes.fromhex(handle)
        if len(content) != HANDLE_BYTES:
            raise ValueError("a memory handle has the wrong length")
        blocks.append(device_bytes(*driver.open(content)))
    return [
        [tensor_at(blocks, place, spec) for place, spec in zip(call, specs, strict=True)]
        for call in places
    ]


def tensor_at(blocks: Sequence[torch.Tensor], place: Any, spec: OutputSpec) -> torch.Tensor:
    """A tensor at [block, offset in bytes, strides]; raises `ValueError`."""
    number, offset, strides = place
    numbers = [number, offset, *strides]
    if any(type(value) is not int or not 0 <= value < 1 << 62 for value in numbers):
        raise ValueError("a place holds something else than whole numbers")
    if number >= len(blocks) or len(strides) != len(spec.shape):
        raise ValueError("a place names no block, or not one stride per axis")
    item, size = size_bytes((1,), spec.dtype), blocks[number].numel()
    steps = [(n - 1) * step for n, step in zip(spec.shape, strides, strict=True) if n]
    if offset % item or offset + (sum(steps) + 1) * item > size:
        raise ValueError("a place lies outside the memory that was handed over")
    wide = blocks[number][: size - size % item].view(torch_dtype(spec.dtype))
    return torch.as_strided(wide, spec.shape, strides, offset // item)
