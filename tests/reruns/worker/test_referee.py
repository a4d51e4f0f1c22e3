"""The comparison itself, in an interpreter with torch."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import json, torch
from assets.reruns.worker.documents import OutputSpec
from assets.reruns.worker.referee import compare
from assets.reruns.worker.tolerance import DEFAULT, FAMILIES

nan, inf = float("nan"), float("inf")
torch.manual_seed(1)

def right(output, reference, rule=DEFAULT, dtype="float32"):
    left, expected = (torch.tensor(v, dtype=getattr(torch, dtype)) for v in (output, reference))
    return compare(OutputSpec("y", tuple(left.shape), dtype), left, expected, rule)["right"]

wide = torch.randn(256, 4096)
weights = torch.randn(64, 4096)
exact = (wide.half() @ weights.half().T)
coarse = (wide.bfloat16() @ weights.bfloat16().T).half()
gemm = OutputSpec("y", tuple(exact.shape), "float16")
print(json.dumps({
    "equal": right([1.0, 2.0], [1.0, 2.0]),
    "within": right([1.0, 2.01], [1.0, 2.0]),
    "outside": right([1.0, 2.1], [1.0, 2.0]),
    "nan in output": right([1.0, nan], [1.0, 2.0]),
    "nan on both sides": right([1.0, nan], [1.0, nan]),
    "nan in reference": right([1.0, 2.0], [1.0, nan]),
    "same infinity": right([1.0, -inf], [1.0, -inf]),
    "other infinity": right([1.0, inf], [1.0, -inf]),
    "infinity in output": right([1.0, inf], [1.0, 2.0]),
    "equal integers": right([1, 2], [1, 2], dtype="int32"),
    "integers off by one": right([1, 2], [1, 3], dtype="int32"),
    "equal booleans": right([True, False], [True, False], dtype="bool"),
    "a tenth off in a low-bit family": right([1.0] * 9 + [9.0], [1.0] * 10, FAMILIES["moe"]),
    "a fifth off in a low-bit family": right([1.0] * 8 + [9.0] * 2, [1.0] * 10, FAMILIES["moe"]),
    "empty": right([], []),
    "bfloat16 passed off as float16": compare(gemm, coarse, exact, FAMILIES["gemm"])["right"],
    "sums in halves": compare(
        gemm,
        (wide.half()[:, :2048].float() @ weights.half()[:, :2048].float().T
         + wide.half()[:, 2048:].float() @ weights.half()[:, 2048:].float().T).half(),
        exact, FAMILIES["gemm"])["right"],
}))
"""


@pytest.fixture(scope="module")
def verdicts(torch_python: str) -> dict[str, bool]:
    output = subprocess.run(
        [torch_python, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout  # fmt: skip
    return dict(json.loads(output))


RIGHT = [
    "equal", "within", "same infinity", "equal integers", "equal booleans", "empty",
    "a tenth off in a low-bit family", "sums in halves",
]  # fmt: skip
WRONG = [
    "outside", "nan in output", "nan on both sides", "nan in reference", "other infinity",
    "infinity in output", "integers off by one", "a fifth off in a low-bit family",
    "bfloat16 passed off as float16",
]  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_right(verdicts: dict[str, bool], name: str) -> None:
    assert verdicts[name]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_wrong(verdicts: dict[str, bool], name: str) -> None:
    assert not verdicts[name]
