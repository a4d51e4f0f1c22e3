"""A machine that lacks something says so in one sentence before anything starts."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assets.reruns.bundles import BundleItem, read_bundle, write_bundle
from assets.reruns.worker import preflight
from assets.reruns.worker.job import Protocol
from tests.reruns.conftest import Bench, Run
from tests.reruns.dishonest.cases import load_cases

ItemWith = Callable[..., BundleItem]
FINE = "def run(hidden_states, weight):\n    return hidden_states\n"


def said_in_one_sentence(run: Run) -> str:
    """What the worker said when it did not start; it wrote nothing and holds nothing."""
    assert run.exit_code == 3, run.error
    assert run.events == []
    assert not run.out.exists()
    lines = run.error.strip().splitlines()
    assert len(lines) == 1, run.error
    return lines[0]


def test_an_interpreter_without_torch(
    worker_file: Path, item_with: ItemWith, tmp_path: Path
) -> None:
    # -S: no site packages, where torch would be if this interpreter had it.
    bench = Bench((sys.executable, "-S", str(worker_file)), tmp_path)
    run = bench.run(bench.bundle([item_with(FINE)]))
    assert "no torch" in said_in_one_sentence(run)
    assert not (tmp_path / "locks").exists()


def test_a_machine_without_a_gpu(bench: Bench, item_with: ItemWith) -> None:
    if preflight.has_driver():
        pytest.skip("this machine has a GPU driver")
    bundle = bench.bundle([item_with(FINE)])
    run = bench.finish(bench.start(bundle, "--gpu", "0"), bundle)
    assert "no NVIDIA driver" in said_in_one_sentence(run)


def test_a_bundle_that_needs_a_compiler_which_is_not_there(bench: Bench) -> None:
    if shutil.which("nvcc", path="/usr/bin:/bin:/usr/local/cuda/bin"):
        pytest.skip("nvcc is installed")
    case = next(case for case in load_cases("cpu") if case.name == "other_binding")
    item = BundleItem(case.name, case.definition, case.workload, case.solution)
    run = bench.run(bench.bundle([item]), environment={"PATH": "/usr/bin:/bin"})
    assert "nvcc" in said_in_one_sentence(run)


@pytest.mark.integration
def test_what_was_lacking_blocks_no_later_try(
    bench: Bench, worker_file: Path, item_with: ItemWith, plain_case: object
) -> None:
    source = plain_case.solution["sources"][0]["content"]  # type: ignore[attr-defined]
    bundle = bench.bundle([item_with(source)])
    without = Bench((sys.executable, "-S", str(worker_file)), bench.folder)
    said_in_one_sentence(without.run(bundle))
    run = bench.run(bundle)
    assert run.exit_code == 0, run.error
    assert [item.status.value for item in run.result().result.items] == ["PASSED"]


def test_a_bundle_of_the_first_protocol_is_read_but_not_run(
    bench: Bench, item_with: ItemWith, tmp_path: Path
) -> None:
    first = Protocol.from_document({"name": "kernelindex-controlled-v1"})
    bundle = write_bundle(tmp_path / "old", [item_with(FINE)], reason="test", protocol=first)
    assert read_bundle(bundle.root).protocol == first
    run = bench.run(bundle)
    assert run.exit_code == 2
    assert "kernelindex-controlled-v1" in run.error
    assert "make a new bundle" in run.error
    assert not run.out.exists()


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("cuda: Optional[str] = None\n", True),
        ("__version__ = '2'\ncuda = None\nhip = None\n", True),
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", False),
        ("", False),
    ],
)
def test_a_torch_built_without_cuda_is_known_by_its_own_word(
    tmp_path: Path, text: str, without: bool
) -> None:
    (tmp_path / "version.py").write_text(text)
    assert preflight._without_cuda([str(tmp_path)]) is without
