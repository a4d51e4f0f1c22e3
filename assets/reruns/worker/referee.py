"""The referee: runs the reference in a process of its own and judges what candidates wrote out.

Only verdict numbers leave it; reference results never do. Needs torch.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from . import outputs
from .documents import OutputSpec
from .inputs import torch_dtype
from .runner import Runner
from .tolerance import ToleranceRule

_CHUNK_ELEMENTS = 1 << 24
_RELATIVE_FLOOR = 1e-8


class Referee:
    """Judges outputs of one problem."""

    def __init__(self, runner: Runner, rule: ToleranceRule) -> None:
        """Make the reference as exact as its own code allows; timing uses the same settings."""
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        self._runner = runner
        self._rule = rule
        self._seen: dict[str, int] = {}

    def facts(self, seed: int) -> dict[str, Any]:
        """Which inputs the reference itself changes or hands back, and one call's time in ns."""
        self._runner.call(seed, "wall", poisoned=True)
        timing = self._runner.call(seed, "wall", poisoned=True)
        held = self._runner._held
        finite = not any(_has_nan(tensor) for tensor in held)
        return {
            "aliased": outputs.aliased(held, self._runner.buffers.values),
            "mutated": self._runner.buffers.changed(seed),
            "finite": finite,
            "wall_ns": timing["wall_ns"],
        }

    def judge(
        self,
        seed: int,
        folder: Path,
        snapshot: Sequence[str],
        final: Sequence[str],
        previous_seeds: Sequence[int],
    ) -> dict[str, Any]:
        """Compare one kept call with the reference for its seed.

        Returns `correctness` of the stream-order snapshot, `late_right` (wrong then, right after
        a grace time), `early` (right for the contents before the last block was written) and
        `stale_of` (the earlier seed whose result it is, else null).
        Raises `ValueError` when the files are not what they should be.
        """
        digest = _digest(folder, snapshot)
        expected = self._reference(seed)
        correctness = self._compare(folder, snapshot, expected)
        late_right = early = False
        if not correctness["right"] and list(final) != list(snapshot):
            late_right = bool(self._compare(folder, final, expected)["right"])
        stale_of = None
        if not correctness["right"]:
            before = self._reference(seed, late=False)
            early = bool(self._compare(folder, snapshot, before)["right"])
            stale_of = self._stale(folder, snapshot, seed, previous_seeds, digest)
        else:
            self._seen.setdefault(digest, seed)
        return {
            "correctness": correctness,
            "late_right": late_right,
            "early": early,
            "stale_of": stale_of,
        }

    def _reference(self, seed: int, late: bool = True) -> list[torch.Tensor]:
        self._runner.call(seed, "wall", poisoned=False, late=late)
        return [tensor.clone() for tensor in self._runner._held]

    def _stale(
        self,
        folder: Path,
        names: Sequence[str],
        seed: int,
        previous_seeds: Sequence[int],
        digest: str,
    ) -> int | None:
        if digest in self._seen and self._seen[digest] != seed:
            return self._seen[digest]
        for earlier in previous_seeds:
            if earlier != seed and self._compare(folder, names, self._reference(earlier))["right"]:
                return earlier
        return None

    def _compare(
        self, folder: Path, names: Sequence[str], expected: Sequence[torch.Tensor]
    ) -> dict[str, Any]:
        specs = self._runner.problem.outputs
        if len(names) != len(specs):
            raise ValueError("not one file per output")
        device = self._runner.device.device
        results = [
            compare(spec, outputs.read(folder / name, spec, device), reference, self._rule)
            for spec, name, reference in zip(specs, names, expected, strict=True)
        ]
        return {
            "right": all(result["right"] for result in results),
            "max_absolute_error": max(result["max_absolute_error"] for result in results),
            "max_relative_error": max(result["max_relative_error"] for result in results),
            "matched_ratio": min(result["matched_ratio"] for result in results),
            "outputs": results,
        }


def compare(
    spec: OutputSpec, output: torch.Tensor, reference: torch.Tensor, rule: ToleranceRule
) -> dict[str, Any]:
    """Compare one output element by element.

    NaN never matches, also not NaN; an infinity matches only the same infinity; integers and
    booleans must be equal.
    """
    exact = not reference.is_floating_point()
    absolute = 0.0 if exact else _absolute(rule, spec, reference)
    relative = 0.0 if exact else rule.relative
    matched = elements = nan_output = nan_both = nan_reference = infinity = 0
    max_absolute = max_relative = 0.0
    flat_output, flat_reference = output.reshape(-1), reference.reshape(-1)
    for start in range(0, flat_output.numel(), _CHUNK_ELEMENTS):
        left = _wide(flat_output[start : start + _CHUNK_ELEMENTS])
        right = _wide(flat_reference[start : start + _CHUNK_ELEMENTS])
        elements += left.numel()
        left_nan, right_nan = torch.isnan(left), torch.isnan(right)
        nan_output += int((left_nan & ~right_nan).sum())
        nan_reference += int(right_nan.sum())
        nan_both += int((left_nan & right_nan).sum())
        unbounded = torch.isinf(left) | torch.isinf(right)
        same_infinity = unbounded & (left == right)
        infinity += int((unbounded & ~same_infinity & ~left_nan & ~right_nan).sum())
        finite = torch.isfinite(left) & torch.isfinite(right)
        error = torch.where(finite, (left - right).abs(), torch.zeros_like(left))
        size = torch.where(finite, right.abs(), torch.zeros_like(left))
        within = (error <= absolute + relative * size) & finite
        matched += int((within | same_infinity).sum())
        max_absolute = max(max_absolute, float(error.max()))
        max_relative = max(max_relative, float((error / (size + _RELATIVE_FLOOR)).max()))
    ratio = matched / elements if elements else 1.0
    required = 1.0 if exact else rule.matched_ratio
    return {
        "name": spec.name,
        "right": ratio >= required and nan_output == 0 and nan_reference == 0 and infinity == 0,
        "max_absolute_error": max_absolute,
        "max_relative_error": max_relative,
        "matched_ratio": ratio,
        "nan_output": nan_output,
        "nan_reference": nan_reference,
        "nan_both": nan_both,
        "infinity_mismatch": infinity,
        "tolerance": {
            "absolute": absolute,
            "relative": relative,
            "matched_ratio": required,
            "source": "integers are compared exactly" if exact else rule.source,
        },
    }


def _absolute(rule: ToleranceRule, spec: OutputSpec, reference: torch.Tensor) -> float:
    if not rule.spacings or not reference.numel():
        return rule.absolute
    finite = torch.nan_to_num(reference.float(), nan=0.0, posinf=0.0, neginf=0.0)
    root_mean_square = float(finite.pow(2).mean().sqrt())
    spacing = float(torch.finfo(torch_dtype(spec.dtype)).eps)
    return max(rule.absolute, rule.spacings * spacing * root_mean_square)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float64 if tensor.element_size() >= 4 else torch.float32)


def _has_nan(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool(torch.isnan(tensor.float()).any())


def _digest(folder: Path, names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        with (folder / name).open("rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()
