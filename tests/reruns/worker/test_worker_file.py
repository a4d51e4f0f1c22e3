"""The single-file worker: the same bytes every time, and nothing but the standard library."""

import ast
import subprocess
import sys
from pathlib import Path

from assets.reruns import worker
from assets.reruns.worker.build import build_worker

SOURCES = sorted(Path(worker.__file__).parent.glob("*.py"))
#: The supervisor must run, and refuse, without torch.
WITH_TORCH = {"calibration", "child", "clocks", "crowd", "inputs", "integrity", "loading",
              "outputs", "referee"}  # fmt: skip


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_the_file_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    left, right = build_worker(tmp_path / "left.pyz"), build_worker(tmp_path / "right.pyz")
    assert left.read_bytes() == right.read_bytes()


def test_it_runs_alone_and_refuses_what_is_no_bundle(tmp_path: Path) -> None:
    file = build_worker(tmp_path / "kernelindex_worker.pyz")
    command = [sys.executable, "-I", str(file), "check", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert found.returncode == 2
    assert "bundle.json cannot be read" in found.stderr


def test_the_worker_imports_torch_and_the_standard_library_only() -> None:
    for path in SOURCES:
        foreign = imported(path) - set(sys.stdlib_module_names) - {"torch"}
        assert not foreign, f"{path.name} imports {foreign}"


def test_only_child_processes_import_torch() -> None:
    assert {path.stem for path in SOURCES if "torch" in imported(path)} == WITH_TORCH
