"""The measurer's own copy of the contents that calls are made on. Needs torch.

What is in a subject's ring may be changed by the subject; what is judged against is made from
here. Contents are drawn from a seed that is secret until the session is over.
"""

from collections.abc import Sequence

import torch

from .inputs import InputBuffers, fill_random, same_bits
from .ring import Ring, layout_of
from .runner import Runner


class Contents:
    """A private ring of inputs; the outputs of its calls are made and dropped one by one."""

    def __init__(self, runner: Runner, entries: int) -> None:
        problem, device = runner.problem, runner.device.device
        inputs = torch.zeros(
            entries * layout_of(problem).input_bytes, dtype=torch.uint8, device=device
        )
        nothing = torch.empty(0, dtype=torch.uint8, device=device)
        self.ring = Ring(problem, entries, inputs, nothing)
        self._buffers: InputBuffers = runner.buffers
        self._generator = torch.Generator(device=device)

    def fill(self, entries: int, seed: int) -> None:
        """Fresh contents in the first entries."""
        self._generator.manual_seed(seed)
        for spec in self.ring.problem.inputs:
            if spec.source == "scalar":
                continue
            column = self.ring.column(spec.name, entries)
            if spec.source == "random":
                fill_random(column, spec, self._generator)
            else:
                column.copy_(self._buffers.fixed(spec.name).reshape(1, -1))

    def reveal_all(self, ring: Ring) -> None:
        """Copy everything into a subject's ring."""
        ring.inputs.copy_(self.ring.inputs[: ring.inputs.numel()])

    def changed(self, ring: Ring, entries: Sequence[int]) -> list[str]:
        """Inputs of which a subject's ring holds something else, bit for bit.

        `entries` say where in that ring the first contents here were put.
        """
        count, size = len(entries), self.ring.layout.input_bytes
        in_order = list(entries) == list(range(count))
        if in_order and same_bits(self.ring.inputs[: count * size], ring.inputs[: count * size]):
            return []
        found: set[str] = set()
        for place, entry in enumerate(entries):
            if same_bits(self.ring.input_block(place), ring.input_block(entry)):
                continue
            pairs = zip(self.ring.arguments(place), ring.arguments(entry), strict=True)
            for spec, (mine, other) in zip(self.ring.problem.inputs, pairs, strict=True):
                if spec.source != "scalar" and not same_bits(mine, other):
                    found.add(spec.name)
        return sorted(found)
