"""The worker as a process: signals, deadlines, locks, limits and what a solution can see."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assets.reruns.bundles import (
    BundleError,
    BundleItem,
    Limits,
    ResultBundle,
    read_bundle,
    read_result,
)
from tests.reruns.conftest import Bench

ItemWith = Callable[..., BundleItem]

FINE = """
import torch

def run(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)
"""
SLEEPS = "import time\n\ndef run(hidden_states, weight):\n    time.sleep(600)\n"


def processes_marked(mark: str) -> list[int]:
    """Processes whose environment or arguments hold a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                if mark.encode() in text and entry.name != str(os.getpid()):
                    found.append(int(entry.name))
    return found


def wait_for_event(process: object, event: str) -> None:
    for line in process.stdout:  # type: ignore[attr-defined]
        if json.loads(line)["event"] == event:
            return
    pytest.fail(f"the worker ended before {event}")


def test_a_signal_ends_everything_within_seconds_and_keeps_what_was_finished(
    bench: Bench, item_with: ItemWith, plain_case: object, tmp_path: Path
) -> None:
    # Two workloads, so that the first item's group is finished when the second one hangs.
    first, second = item_with(FINE, "first"), item_with(SLEEPS, "second")
    other = {**dict(second.workload), "axes": {"rows": 65}}  # type: ignore[arg-type]
    bundle = bench.bundle([first, BundleItem("second", second.definition, other, second.solution)])
    process = bench.start(bundle, environment={"TMPDIR": str(tmp_path)})
    wait_for_event(process, "item_finished")
    wait_for_event(process, "item_started")
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 143
    assert time.monotonic() - started < 10
    assert processes_marked(str(tmp_path)) == []
    result = read_result(bench.out_of(bundle), bundle).result
    assert result.state.value == "cancelled"
    assert [item.status.value for item in result.items] == ["PASSED", "CANCELLED"]
    process.communicate()


def test_a_killed_worker_leaves_no_process_and_no_half_result(
    bench: Bench, item_with: ItemWith, tmp_path: Path
) -> None:
    bundle = bench.bundle([item_with(SLEEPS)])
    process = bench.start(bundle, environment={"TMPDIR": str(tmp_path)})
    wait_for_event(process, "item_started")
    assert len(processes_marked(str(tmp_path))) >= 3  # worker, nursery, candidate, referee
    process.kill()
    process.communicate()
    end = time.monotonic() + 10
    while processes_marked(str(tmp_path)) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_marked(str(tmp_path)) == []
    assert not bench.out_of(bundle).exists()


def test_the_deadline_ends_the_run_and_says_so(bench: Bench, item_with: ItemWith) -> None:
    run = bench.run(bench.bundle([item_with(SLEEPS)]), "--deadline-s", "3")
    assert run.exit_code == 0
    result = run.result().result
    assert result.state.value == "deadline"
    assert [entry.code for entry in result.items[0].reasons] == ["DEADLINE_REACHED"]


def test_a_locked_gpu_is_refused_with_its_holder(bench: Bench, item_with: ItemWith) -> None:
    locks = bench.folder / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / "gpu-cpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4242\n")
        lock.flush()
        run = bench.run(bench.bundle([item_with(FINE)]))
    assert run.exit_code == 4
    assert "process 4242" in run.error
    assert not run.out.exists()


def test_a_changed_bundle_is_refused(bench: Bench, item_with: ItemWith) -> None:
    bundle = bench.bundle([item_with(FINE)])
    solution = bundle.root / bundle.items[0].solution.path
    solution.write_text(solution.read_text().replace("1e-6", "1e-5"))
    run = bench.run(bundle)
    assert run.exit_code == 2
    assert bundle.items[0].solution.path in run.error
    with pytest.raises(BundleError, match="digest"):
        read_bundle(bundle.root)


def test_an_output_folder_in_use_is_refused(bench: Bench, item_with: ItemWith) -> None:
    bundle = bench.bundle([item_with(FINE)])
    out = bench.out_of(bundle)
    out.mkdir()
    (out / "keep").write_text("mine")
    assert bench.run(bundle).exit_code == 2
    assert (out / "keep").read_text() == "mine"


def test_a_sandboxed_solution_writes_only_into_its_own_folder(
    bench: Bench, item_with: ItemWith, tmp_path: Path
) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    source = FINE + (
        "from pathlib import Path\n"
        "Path('mine').write_text('fine')\n"
        f"for place in ({str(tmp_path)!r}, str(Path.home().parent), '/dev/shm/../../etc'):\n"
        "    try:\n"
        "        (Path(place) / 'forged').write_text('x')\n"
        "        print('WROTE', place)\n"
        "    except OSError as error:\n"
        "        print('KEPT OUT', error.strerror)\n"
    )
    result = bench.run(bench.bundle([item_with(source)]), "--sandbox", "bwrap").result()
    log = result.log_of(result.result.items[0])
    assert result.result.items[0].status.value == "PASSED", log
    assert log.count("KEPT OUT") == 2, log  # its own home's parent is the worker's scratch folder
    assert not (tmp_path / "forged").exists()
    assert "bubblewrap" in (result.result.items[0].isolation or {})["filesystem"]


def test_a_killed_sandboxed_worker_leaves_no_process(
    bench: Bench, item_with: ItemWith, tmp_path: Path
) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    bundle = bench.bundle([item_with(SLEEPS)])
    process = bench.start(bundle, "--sandbox", "bwrap", environment={"TMPDIR": str(tmp_path)})
    wait_for_event(process, "item_started")
    process.kill()
    process.communicate()
    end = time.monotonic() + 10
    while processes_marked(str(tmp_path)) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_marked(str(tmp_path)) == []


def test_without_torch_there_is_a_result_that_says_so(
    bench: Bench, item_with: ItemWith, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch on this machine')\n")
    run = bench.run(bench.bundle([item_with(FINE)]), environment={"PYTHONPATH": str(tmp_path)})
    assert run.exit_code == 3
    result = run.result().result
    assert result.state.value == "infrastructure_error"
    assert "no torch on this machine" in (result.error or "")
    assert result.items[0].status.value == "INFRASTRUCTURE_ERROR"


CURIOUS = FINE + (
    "import os, socket, sys\n"
    "print('NAMES', sorted(os.environ))\n"
    "print('INTERFACES', [name for _, name in socket.if_nameindex()])\n"
    "print('INPUT', repr(sys.stdin.read()))\n"
)
GREEDY = (
    "import time\n\ndef run(hidden_states, weight):\n"
    "    print('x' * 100_000, flush=True)\n"
    "    held = bytearray(1 << 30)\n    time.sleep(600)\n"
)


@pytest.fixture(scope="module")
def mixed(bench: Bench, item_with: ItemWith) -> ResultBundle:
    """One run of items that fail in their own ways beside one that is fine."""
    fine = item_with(FINE, "fine")
    items = [
        item_with(SLEEPS, "slow"),
        fine,
        item_with(CURIOUS, "curious"),
        item_with(GREEDY, "greedy"),
        item_with("import a_library_that_is_not_here\n" + FINE, "needy"),
        BundleItem("list", b"[]", fine.workload, fine.solution),
        BundleItem("number", fine.definition, b'{"axes": 3}', fine.solution),
        BundleItem("empty", fine.definition, fine.workload, b"{}"),
        BundleItem("null", fine.definition, fine.workload, b"null"),
    ]
    limits = Limits(per_run_timeout_s=4.0, memory_bytes=900 << 20, max_log_bytes=4000)
    return bench.run(
        bench.bundle(items, limits), environment={"HF_TOKEN": "secret-of-mine"}
    ).result()


def outcome(result: ResultBundle, item_id: str) -> tuple[str, list[str], str]:
    item = next(item for item in result.result.items if item.item_id == item_id)
    return item.status.value, [entry.code for entry in item.reasons], result.log_of(item)


def test_one_slow_item_times_out_and_the_others_are_measured(mixed: ResultBundle) -> None:
    assert outcome(mixed, "slow")[:2] == ("TIMEOUT", ["TOO_SLOW"])
    assert outcome(mixed, "fine")[0] == "PASSED"


def test_a_solution_sees_no_tokens_no_network_and_no_terminal(mixed: ResultBundle) -> None:
    status, _, log = outcome(mixed, "curious")
    assert status == "PASSED"
    assert "NAMES" in log
    assert "HF_TOKEN" not in log
    assert "secret-of-mine" not in log
    assert "INPUT ''" in log
    item = next(item for item in mixed.result.items if item.item_id == "curious")
    if (item.isolation or {})["network"].startswith("none"):
        assert "INTERFACES ['lo']" in log


def test_memory_and_log_stay_within_their_limits(mixed: ResultBundle) -> None:
    status, reasons, log = outcome(mixed, "greedy")
    assert (status, reasons) == ("RUNTIME_ERROR", ["MEMORY_LIMIT"])
    assert len(log.encode()) <= 4000


def test_a_missing_library_is_no_fault_of_the_solution(mixed: ResultBundle) -> None:
    assert outcome(mixed, "needy")[:2] == ("INFRASTRUCTURE_ERROR", ["MISSING_DEPENDENCY"])
    assert len(mixed.traces) == 6  # no trace of items that say nothing about their solution


def test_odd_documents_fail_alone(mixed: ResultBundle) -> None:
    for item_id in ("list", "number", "empty", "null"):
        assert outcome(mixed, item_id)[0] in ("INFRASTRUCTURE_ERROR", "COMPILE_ERROR")
