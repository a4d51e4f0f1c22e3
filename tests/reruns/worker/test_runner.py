"""Probes keep the device busy until the whole call is queued, and late work is waited for."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import json, tempfile, time, torch
from pathlib import Path
from assets.reruns.worker import runner
from assets.reruns.worker.clocks import CpuDevice
from assets.reruns.worker.documents import problem_of

class Watched(CpuDevice):
    def __init__(self):
        super().__init__()
        self.runways, self.crowds = [], []
    def runway(self, longer_us=0):
        self.runways.append(longer_us)
    def crowd(self, least_us):
        self.crowds.append(least_us)

definition = {
    "name": "double", "op_type": "other", "axes": {"n": {"type": "var"}},
    "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}}, "reference": "",
}
workload = {"uuid": "w", "axes": {"n": 8}, "inputs": {"x": {"type": "random"}}}
device = Watched()
subject = runner.Runner(problem_of(definition, workload, {}), device)

def slow(x):
    time.sleep(0.02)
    return x * 2

subject.set_entry_point(slow)
for mode in ("wall", "device", "probe_start", "probe_end"):
    subject.call(1, mode, poisoned=False)
subject.set_entry_point(lambda x: x * 2)
subject.call(1, "wall", poisoned=False)
subject.call(1, "probe_start", poisoned=False)
subject.call(1, "probe_end", poisoned=False)

given = []
def late(x):
    y = torch.zeros_like(x)
    given.append((x, y))
    return y

def finish_late():
    x, y = given[-1]
    y.copy_(x * 2)

class Late(CpuDevice):
    # Stands for work that goes on after the stream's turn is over.
    def finish(self):
        finish_late()
        return super().finish()

subject = runner.Runner(problem_of(definition, workload, {}), Late())
subject.set_entry_point(late)
subject.call(1, "probe_end", poisoned=False)
expected = given[-1][0] * 2
copies = {"snapshot": bool(torch.equal(subject._snapshot[0], expected)),
          "final": bool(torch.equal(subject._held[0], expected))}

runner.GRACE_S, runner.LONG_GRACE_S = 0.0, 0.0
subject = runner.Runner(problem_of(definition, workload, {}), CpuDevice())
subject.set_entry_point(late)
subject.call(1, "wall", poisoned=False)
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    kept = subject.keep(1, folder, "kept")
    finish_late()
    later = subject.look_again(folder, "kept")["final"]
    bytes_of = {name: (folder / name).read_bytes().hex() for name in [*kept["final"], *later]}
print(json.dumps({
    "runways": device.runways, "crowds": device.crowds, "copies": copies,
    "looked_again": {"kept": [bytes_of[n] for n in kept["final"]],
                     "later": [bytes_of[n] for n in later],
                     "expected": [(given[-1][0] * 2).numpy().tobytes().hex()]},
}))
"""


def test_a_probe_hides_launching_however_slow_the_host_is(torch_python: str) -> None:
    finished = subprocess.run(
        [torch_python, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    answer = json.loads(finished.stdout)
    timed, after_slow, after_fast = answer["runways"]
    assert timed == 0, "timed calls keep the protocol's own runway"
    assert 60_000 <= after_slow <= 200_000
    assert after_fast == 10_000
    crowd_after_slow, crowd_after_fast = answer["crowds"]
    assert 60_000 <= crowd_after_slow <= 200_000
    assert crowd_after_fast == 10_000
    assert answer["copies"] == {"snapshot": False, "final": True}
    looked = answer["looked_again"]
    assert looked["kept"] == ["00" * 32]
    assert looked["later"] == looked["expected"] != looked["kept"]
