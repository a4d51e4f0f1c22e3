"""Judging a whole row says what judging one output after the other says."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import json, torch
from assets.reruns.worker.documents import OutputSpec
from assets.reruns.worker.judging import clearly_right, right_on_device
from assets.reruns.worker.referee import compare
from assets.reruns.worker.tolerance import DEFAULT, FAMILIES, ToleranceRule

nan, inf = float("nan"), float("inf")
torch.manual_seed(3)
values = [0.0, -0.0, 1.0, 1.005, 1.05, -1.0, 1e-3, 65504.0, nan, inf, -inf, 1e30]
rules = [DEFAULT, FAMILIES["gemm"], FAMILIES["moe"], ToleranceRule(0.0, 0.0, 1.0, 0.0, "t"),
         ToleranceRule(1e-2, 1e-2, 0.5, 0.0, "t")]
different, unsafe, tried, clear = [], [], 0, 0
for dtype in ("float32", "float16", "bfloat16", "float64"):
    for rule in rules:
        for size in (1, 2, 5, 40):
            for trial in range(30):
                pick = torch.randint(len(values), (2, size))
                if trial % 3 == 0:
                    pick[1] = pick[0]
                if trial % 3 == 1:
                    pick = pick % 8
                left, right = (torch.tensor([values[i] for i in row]).to(getattr(torch, dtype))
                               for row in pick)
                spec = OutputSpec("y", (size,), dtype)
                says = compare(spec, left, right, rule)["right"]
                fast = bool(right_on_device(spec, left, right, rule))
                sure = bool(clearly_right(spec, left, right, rule))
                tried += 1
                clear += sure
                if says != fast:
                    different.append([dtype, rule.source, left.tolist(), right.tolist(), says])
                if sure and not says:
                    unsafe.append([dtype, rule.source, left.tolist(), right.tolist()])
whole = OutputSpec("y", (3,), "int32")
integers = [bool(right_on_device(whole, torch.tensor([1, 2, v]), torch.tensor([1, 2, 3]), DEFAULT))
            for v in (3, 4)]
print(json.dumps({"different": different, "unsafe": unsafe, "tried": tried, "clear": clear,
                  "integers": integers}))
"""


def test_both_ways_of_judging_agree_on_every_sort_of_number(torch_python: str) -> None:
    done = subprocess.run(
        [torch_python, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["different"] == []
    assert found["unsafe"] == []
    assert 0 < found["clear"] < found["tried"]
    assert found["integers"] == [True, False]
