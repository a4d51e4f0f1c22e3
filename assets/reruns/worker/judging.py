"""Judge many outputs at once against the reference. Needs torch.

The rules are those of `referee.compare`; here they are asked of whole rows, and only an output
that breaks them is looked at one by one.
"""

from collections.abc import Sequence
from typing import Any

import torch

from .documents import OutputSpec
from .referee import absolute_bound, compare
from .runner import Runner
from .tolerance import ToleranceRule

_CHUNK_ELEMENTS = 1 << 24


class Judge:
    """Compares outputs with what the reference makes of the same contents."""

    def __init__(self, runner: Runner, rule: ToleranceRule) -> None:
        self._runner = runner
        self._rule = rule
        self._specs = runner.problem.outputs
        self._pool: Any = None

    def judge(
        self, contents: Sequence[list[Any]], outputs: Sequence[Sequence[torch.Tensor]]
    ) -> dict[str, Any]:
        """Judge one output per contents, call by call; see `verdict`."""
        verdicts = [
            self._right(made, self._runner.apply(arguments, []))
            for arguments, made in zip(contents, outputs, strict=True)
        ]
        right = torch.stack(verdicts).tolist() if verdicts else []
        return self.verdict(right, contents, outputs)

    def verdict(
        self,
        right: Sequence[bool],
        contents: Sequence[list[Any]],
        outputs: Sequence[Sequence[torch.Tensor]],
    ) -> dict[str, Any]:
        """`right`, how many were `wrong` and how many of those `unwritten` (poison throughout),
        and `correctness` of the first wrong one, else of the first."""
        wrong = [index for index, fine in enumerate(right) if not fine]
        shown = wrong[0] if wrong else 0
        expected = self._runner.apply(contents[shown], [])
        return {
            "right": not wrong,
            "wrong": len(wrong),
            "outputs": len(right),
            "unwritten": sum(_poisoned(outputs[index]) for index in wrong),
            "correctness": {**self._compare(outputs[shown], expected), "right": not wrong},
        }

    def capture(
        self, contents: Sequence[list[Any]], outputs: Sequence[Sequence[torch.Tensor]]
    ) -> "CapturedJudge":
        """The judgement as one graph, for contents and outputs that stay where they are.

        What it calls right is right; what it does not is to be judged again, call by call.
        For references only that are known to be capturable and to leave their inputs alone.
        """
        self.judge(contents[:1], outputs[:1])  # loads what a capture must not load
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        verdicts = torch.zeros(len(contents), dtype=torch.bool, device=self._runner.device.device)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            graph.capture_begin(pool=self._pool)
            try:
                for place, (arguments, made) in enumerate(zip(contents, outputs, strict=True)):
                    verdicts[place] = self._clearly(made, self._runner.apply(arguments, []))
            finally:
                graph.capture_end()
        return CapturedJudge(graph, verdicts)

    def _right(self, made: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> Any:
        """Whether all outputs of one call are right, as a tensor: nothing waits for the device."""
        found = [
            right_on_device(spec, output, reference, self._rule)
            for spec, output, reference in zip(self._specs, made, expected, strict=True)
        ]
        return torch.stack(found).all()

    def _clearly(self, made: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> Any:
        found = [
            clearly_right(spec, output, reference, self._rule)
            for spec, output, reference in zip(self._specs, made, expected, strict=True)
        ]
        return torch.stack(found).all()

    def _compare(
        self, made: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]
    ) -> dict[str, Any]:
        results = [
            compare(spec, output, reference, self._rule)
            for spec, output, reference in zip(self._specs, made, expected, strict=True)
        ]
        return {
            "max_absolute_error": max(result["max_absolute_error"] for result in results),
            "max_relative_error": max(result["max_relative_error"] for result in results),
            "matched_ratio": min(result["matched_ratio"] for result in results),
            "outputs": results,
        }


class CapturedJudge:
    """A judgement as a graph."""

    def __init__(self, graph: torch.cuda.CUDAGraph, verdicts: torch.Tensor) -> None:
        self._graph = graph
        self._verdicts = verdicts

    def right(self) -> list[bool]:
        """Which outputs are clearly right, by what lies in memory now."""
        self._verdicts.zero_()
        self._graph.replay()
        return [bool(value) for value in self._verdicts.tolist()]


def clearly_right(
    spec: OutputSpec, output: torch.Tensor, reference: torch.Tensor, rule: ToleranceRule
) -> torch.Tensor:
    """Whether every element lies within the bound, in few operations.

    Strictly below it, so that an infinite bound, which an infinite reference makes, holds nothing
    and NaN does not either: those are left to the exact rules.
    """
    if not output.numel() or not reference.is_floating_point():
        return right_on_device(spec, output, reference, rule)
    absolute = absolute_bound(rule, spec, reference)
    flat, flat_reference = output.reshape(-1), reference.reshape(-1)
    fine = []
    for start in range(0, output.numel(), _CHUNK_ELEMENTS):
        right = _wide(flat_reference[start : start + _CHUNK_ELEMENTS])
        error = _wide(flat[start : start + _CHUNK_ELEMENTS]) - right
        bound = right.abs().mul_(rule.relative).add_(absolute)
        fine.append((error.abs_() < bound).all())
    return torch.stack(fine).all()


def right_on_device(
    spec: OutputSpec, output: torch.Tensor, reference: torch.Tensor, rule: ToleranceRule
) -> torch.Tensor:
    """`referee.compare`'s `right` as a tensor of one element."""
    count = output.numel()
    if not count:
        return torch.ones((), dtype=torch.bool, device=output.device)
    if not reference.is_floating_point():
        return (output == reference).all()
    absolute = absolute_bound(rule, spec, reference)
    flat, flat_reference = output.reshape(-1), reference.reshape(-1)
    matched = torch.zeros((), dtype=torch.int64, device=output.device)
    broken = torch.zeros((), dtype=torch.bool, device=output.device)
    for start in range(0, count, _CHUNK_ELEMENTS):
        left = _wide(flat[start : start + _CHUNK_ELEMENTS])
        right = _wide(flat_reference[start : start + _CHUNK_ELEMENTS])
        equal = left == right
        within = (left - right).abs() <= right.abs().mul(rule.relative).add(absolute)
        finite = torch.isfinite(right) & torch.isfinite(left)
        matched = matched + ((within & finite) | equal).sum()
        broken = broken | (~finite & ~equal).any()
    return (matched >= rule.matched_ratio * count) & ~broken


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float64 if tensor.element_size() >= 4 else torch.float32)


def _poisoned(made: Sequence[torch.Tensor]) -> bool:
    floats = [output for output in made if output.is_floating_point()]
    return bool(floats) and all(bool(torch.isnan(output.float()).all()) for output in floats)
