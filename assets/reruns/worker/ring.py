"""Where a problem's inputs and outputs lie in memory that the measurer and a process share.

An entry holds everything of one call: all its inputs in one block, all its outputs in another.
Both processes make the same views from the same layout. Needs torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .documents import InputSpec, OutputSpec, Problem, size_bytes
from .inputs import torch_dtype

#: What torch's own allocator aligns to, and kernels count on.
ALIGNMENT = 512

_as_strided = torch.as_strided
_view = torch.Tensor.view


@dataclass(frozen=True)
class Layout:
    """Offsets of each tensor inside an entry, and the entry's size, in bytes."""

    input_offsets: tuple[int, ...]
    output_offsets: tuple[int, ...]
    input_bytes: int
    output_bytes: int


def layout_of(problem: Problem) -> Layout:
    """The layout of a problem's entries; scalars take no room."""
    tensors = [spec for spec in problem.inputs if spec.source != "scalar"]
    input_offsets, input_bytes = _offsets(tensors)
    output_offsets, output_bytes = _offsets(problem.outputs)
    return Layout(input_offsets, output_offsets, input_bytes, output_bytes)


def _offsets(specs: Sequence[InputSpec | OutputSpec]) -> tuple[tuple[int, ...], int]:
    offsets, end = [], 0
    for spec in specs:
        offsets.append(end)
        end += -(-size_bytes(spec.shape, spec.dtype) // ALIGNMENT) * ALIGNMENT
    return tuple(offsets), max(end, ALIGNMENT)


class Ring:
    """`entries` entries of a problem over two blocks of bytes."""

    def __init__(
        self, problem: Problem, entries: int, inputs: torch.Tensor, outputs: torch.Tensor
    ) -> None:
        """`inputs` and `outputs` are tensors of bytes, at least as long as the layout asks for."""
        self.problem = problem
        self.layout = layout_of(problem)
        self.entries = entries
        self.inputs = inputs[: entries * self.layout.input_bytes]
        self.outputs = outputs[: entries * self.layout.output_bytes]
        self._tensors = [spec for spec in problem.inputs if spec.source != "scalar"]

    def input_block(self, entry: int) -> torch.Tensor:
        """All of one entry's inputs as bytes."""
        size = self.layout.input_bytes
        return self.inputs[entry * size : (entry + 1) * size]

    def output_block(self, entry: int) -> torch.Tensor:
        """All of one entry's outputs as bytes."""
        size = self.layout.output_bytes
        return self.outputs[entry * size : (entry + 1) * size]

    def arguments(self, entry: int) -> list[Any]:
        """One entry's inputs in the definition's order, scalars among them."""
        block, offsets = self.input_block(entry), iter(self.layout.input_offsets)
        return [
            spec.value if spec.source == "scalar" else tensor_in(block, next(offsets), spec)
            for spec in self.problem.inputs
        ]

    def targets(self, entry: int) -> list[torch.Tensor]:
        """One entry's outputs."""
        return targets_in(self.output_block(entry), self.problem, self.layout)

    def column(self, name: str, entries: int) -> torch.Tensor:
        """One input of the first `entries` entries, a row for each, padding left out."""
        number = [spec.name for spec in self._tensors].index(name)
        spec = self._tensors[number]
        wide = _view(self.inputs, torch_dtype(spec.dtype))
        item = wide.element_size()
        count = size_bytes(spec.shape, spec.dtype) // item
        stride = self.layout.input_bytes // item
        start = self.layout.input_offsets[number] // item
        return _as_strided(wide, (entries, count), (stride, 1), wide.storage_offset() + start)


def targets_in(block: torch.Tensor, problem: Problem, layout: Layout) -> list[torch.Tensor]:
    """The outputs in one entry's block of bytes."""
    return [
        tensor_in(block, offset, spec)
        for offset, spec in zip(layout.output_offsets, problem.outputs, strict=True)
    ]


def tensor_in(block: torch.Tensor, offset: int, spec: InputSpec | OutputSpec) -> torch.Tensor:
    """A dense tensor at an offset of a block of bytes."""
    size = size_bytes(spec.shape, spec.dtype)
    return _view(_view(block[offset : offset + size], torch_dtype(spec.dtype)), spec.shape)
