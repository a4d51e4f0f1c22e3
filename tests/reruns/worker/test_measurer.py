"""The measurer against processes that answer in ways of their own, in an interpreter with torch.

The other end of the control page is played by a thread here: it holds the same memory and may do
all that a solution's process may do between a command and its answer.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import json, os, threading, time, torch
from assets.reruns.worker import measurer as module
from assets.reruns.worker.clocks import CpuDevice
from assets.reruns.worker.control import LEAVE, ROW, Follower, SharedPage
from assets.reruns.worker.documents import problem_of
from assets.reruns.worker.exports import tensor_at
from assets.reruns.worker.ring import Ring
from assets.reruns.worker.runner import Runner
from assets.reruns.worker.shared_memory import host_bytes
from assets.reruns.worker.tolerance import DEFAULT

definition = {
    "name": "scale", "op_type": "other", "axes": {"n": {"type": "var"}},
    "inputs": {"x": {"shape": ["n"], "dtype": "float32"}, "f": {"shape": None, "dtype": "float32"},
               "k": {"shape": ["n"], "dtype": "int32"}},
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}, "z": {"shape": [2], "dtype": "float32"}},
    "reference": "",
}
workload = {"uuid": "w", "axes": {"n": 1000}, "inputs": {
    "x": {"type": "random"}, "f": {"type": "scalar", "value": 3.0}, "k": {"type": "random"}}}
problem = problem_of(definition, workload, {})

def reference(x, f, k):
    return x * f + k, x[:2].clone()

def attempt(behave, gated=6, timeout=3.0, rows=0):
    runner = Runner(problem, CpuDevice())
    runner.set_entry_point(reference)
    judge = module.Measurer(runner, DEFAULT)
    room = judge.room()
    judge.make_room(8, 8)
    sizes = [8 * room["input_bytes"], 8 * room["output_bytes"]]
    descriptors = [os.memfd_create("page"), os.memfd_create("in"), os.memfd_create("out")]
    for descriptor, size in zip(descriptors, [4096, *sizes]):
        os.ftruncate(descriptor, size)
    judge.seat("a", 8, 8, 8, os.getpid(), descriptors)
    blocks = [host_bytes(one, size) for one, size in zip(descriptors[1:], sizes)]
    ring = Ring(problem, 8, *blocks)
    follower = Follower(SharedPage(descriptors[0]))
    state = {"calls": 0, "seen": []}
    def play():
        while True:
            command, entry = follower.next()
            if command == LEAVE:
                follower.answer()
                return
            state["calls"] += 1
            state["seen"].append(float(ring.arguments(entry)[0][0]))
            if command == ROW:
                behave(ring, state, follower)
                follower.answer()
            elif behave(ring, entry, state, follower) != "silent":
                follower.answer()
    threading.Thread(target=play, daemon=True).start()
    plan = {"rows": rows} if rows else {"called": gated}
    found = judge.turn("a", {**plan, "timeout_s": timeout}, [])
    judged = found["judged"]
    times = found["rows"] if rows else found["called"]
    return {"ended": found["ended"], "times": len(times),
            "entries": len({t.get("entry") for t in times}),
            "seeds": len({t["seed"] for t in times}),
            "right": [j["right"] for j in judged], "unwritten": [j["unwritten"] for j in judged],
            "mutated": [j["mutated"] for j in judged],
            "late": [j.get("late") for j in judged],
            "fresh": len(set(state["seen"])) == state["calls"],
            "errors": [j["correctness"]["max_absolute_error"] for j in judged]}

def right(ring, entry):
    made = reference(*ring.arguments(entry))
    for target, value in zip(ring.targets(entry), made):
        target.copy_(value)

def honest(ring, entry, state, follower):
    right(ring, entry)

def nothing(ring, entry, state, follower):
    pass

def first_half(ring, entry, state, follower):
    y, z = ring.targets(entry)
    made = reference(*ring.arguments(entry))
    y[:500], z[:] = made[0][:500], made[1]

def later(ring, entry, state, follower):
    follower.answer()
    time.sleep(0.2)
    right(ring, entry)

def mends_inputs(ring, entry, state, follower):
    x, f, k = ring.arguments(entry)
    x.zero_(); k.zero_()
    for target in ring.targets(entry):
        target.zero_()

def one_off(ring, entry, state, follower):
    right(ring, entry)
    if state["calls"] == 3:
        ring.targets(entry)[0][7] += 50.0

def stale(ring, entry, state, follower):
    if state["calls"] == 1:
        right(ring, entry); state["kept"] = [t.clone() for t in ring.targets(entry)]
    for target, value in zip(ring.targets(entry), state["kept"]):
        target.copy_(value)

def raises(ring, entry, state, follower):
    follower.fail()

def silent(ring, entry, state, follower):
    return "silent"

def scribbles(ring, entry, state, follower):
    right(ring, entry)
    follower._words[5] = 12345  # an answer with a token that was never given

def row(ring, state, follower):
    for entry in range(8):
        right(ring, entry)

def row_without_last(ring, state, follower):
    for entry in range(7):
        right(ring, entry)

def row_of_one(ring, state, follower):
    right(ring, 0)
    for entry in range(1, 8):
        for target, value in zip(ring.targets(entry), ring.targets(0)):
            target.copy_(value)

def row_finished_later(ring, state, follower):
    for entry in range(8):
        for target in ring.targets(entry):
            target.zero_()
    judge_row = module.Measurer._judged_row
    def after_the_end(self, *arguments):
        module.Measurer._judged_row = judge_row
        row(ring, state, follower)  # as if it had gone on until somebody looked
        return judge_row(self, *arguments)
    module.Measurer._judged_row = after_the_end

rows = {f.__name__: attempt(f, rows=3) for f in (
    row, row_without_last, row_of_one, row_finished_later)}
cases = {f.__name__: attempt(f, timeout=0.5 if f in (silent,) else 5.0) for f in (
    honest, nothing, first_half, later, mends_inputs, one_off, stale, raises, silent, scribbles)}
cases.update(rows)
block = torch.zeros(4096, dtype=torch.uint8)
spec = problem.outputs[0]
def refused(*place):
    try:
        tensor_at([block], list(place), spec)
    except (ValueError, TypeError):
        return True
    return False
cases["places"] = {
    "fits": refused(0, 96, [1]), "ends behind": refused(0, 100, [1]), "odd": refused(0, 1, [1]),
    "before": refused(0, -4, [1]), "backwards": refused(0, 4000, [-1]),
    "no block": refused(1, 0, [1]), "far apart": refused(0, 0, [1 << 40]),
    "no axis": refused(0, 0, []), "bool": refused(False, 0, [1]),
    "text": refused(0, "0", [1]), "same": refused(0, 0, [0]),
}
print(json.dumps(cases))
"""


@pytest.fixture(scope="module")
def found(torch_python: str) -> dict[str, Any]:
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
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_an_honest_process_is_measured_on_contents_that_never_come_again(
    found: dict[str, Any],
) -> None:
    honest = found["honest"]
    assert honest["right"] == [True] * 6
    assert honest["mutated"] == [[]] * 6
    assert honest["times"] == honest["seeds"] == 6
    assert honest["fresh"]
    assert honest["ended"] is None


def test_entries_are_chosen_at_random(found: dict[str, Any]) -> None:
    assert found["honest"]["entries"] > 1


@pytest.mark.parametrize("case", ["nothing", "first_half", "later", "one_off", "stale"])
def test_outputs_that_are_not_there_at_the_answer_are_wrong(
    found: dict[str, Any], case: str
) -> None:
    assert False in found[case]["right"]
    assert found[case]["times"] < 6 or case == "stale", "nothing is timed after a wrong output"


def test_what_was_never_written_is_told_from_what_is_wrong(found: dict[str, Any]) -> None:
    assert found["nothing"]["unwritten"] == [1]
    assert found["one_off"]["unwritten"][-1] == 0
    assert found["one_off"]["errors"][-1] == pytest.approx(50.0, abs=1e-2)


def test_changing_inputs_does_not_make_a_wrong_output_right(found: dict[str, Any]) -> None:
    assert found["mends_inputs"]["right"] == [False]
    assert found["mends_inputs"]["mutated"] == [["k", "x"]]


def test_a_row_is_read_whole(found: dict[str, Any]) -> None:
    row = found["row"]
    assert (row["right"], row["late"], row["seeds"]) == ([True] * 3, [0] * 3, 3)
    assert found["row_without_last"]["right"] == [False]
    assert found["row_without_last"]["unwritten"] == [1]
    assert found["row_of_one"]["right"] == [False]


def test_what_is_finished_after_the_answer_is_not_taken_for_right(found: dict[str, Any]) -> None:
    """Every output is right when all are read; the pieces that were copied at once are not."""
    row = found["row_finished_later"]
    assert row["errors"] == [0.0]
    assert row["late"][0] > 0
    assert row["right"] == [False]


def test_a_call_that_raises_ends_the_turn(found: dict[str, Any]) -> None:
    assert found["raises"]["ended"] == "failed"
    assert found["raises"]["times"] == 0


def test_a_process_that_does_not_answer_is_not_waited_for_for_ever(found: dict[str, Any]) -> None:
    assert found["silent"]["ended"] == "timeout"


def test_words_that_nobody_asked_for_answer_nothing(found: dict[str, Any]) -> None:
    assert found["scribbles"]["right"] == [True] * 6


def test_outputs_outside_the_memory_that_was_handed_over_are_refused(
    found: dict[str, Any],
) -> None:
    allowed = {name for name, refused in found["places"].items() if not refused}
    assert allowed == {"fits", "same"}
