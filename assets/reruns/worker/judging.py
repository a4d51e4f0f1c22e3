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

    def judge(
        self, contents: Sequence[list[Any]], outputs: Sequence[Sequence[torch.Tensor]]
    ) -> dict[str, Any]:
        """Judge one output per contents.

        Returns `right`, how many were `wrong` and how many of those `unwritten` (still poisoned
        throughout), and `correctness` of the first wrong one, else of the first.
        """
        verdicts: list[torch.Tensor] = []
        first: dict[str, Any] | None = None
        for arguments, made in zip(contents, outputs, strict=True):
            expected = self._runner.apply(arguments, [])
            if first is None:
                first = self._compare(made, expected)
            verdicts.append(self._right(made, expected))
        right = torch.stack(verdicts).tolist() if verdicts else []
        wrong = [index for index, fine in enumerate(right) if not fine]
        unwritten = sum(_poisoned(outputs[index]) for index in wrong)
        if wrong:
            # The reference may change its inputs; the numbers of a wrong output are only shown.
            expected = self._runner.apply(contents[wrong[0]], [])
            first = self._compare(outputs[wrong[0]], expected)
        return {
            "right": not wrong,
            "wrong": len(wrong),
            "outputs": len(right),
            "unwritten": unwritten,
            "correctness": {**(first or {}), "right": not wrong},
        }

    def _right(self, made: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> Any:
        """Whether all outputs of one call are right, as a tensor: nothing waits for the device."""
        found = [
            right_on_device(spec, output, reference, self._rule)
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
    return all(
        bool(torch.isnan(output.float()).all()) for output in made if output.is_floating_point()
    ) and any(output.is_floating_point() for output in made)
