"""Fixtures that every room's tests share: data beside the repository, read and never copied."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.builders import PUBLIC, Ingested, ingest
from tests.warehouses import ingest_by_author

_REPOSITORY = Path(__file__).parent.parent
# The revision that the expected values of the golden data were made at.
GOLDEN_REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"


# How long an example takes says how busy the machine is, nothing of what is tested.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Fixtures that need what `.ci/run` installs: a test that asks for one is an integration test.
_NEEDS_MORE = frozenset({"torch_python"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses one of these fixtures, so that none runs nowhere."""
    for item in items:
        if _NEEDS_MORE.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data: beside the repository, or where KERNELINDEX_SHARED says."""
    places = [os.environ.get("KERNELINDEX_SHARED"), _REPOSITORY.parent / "shared"]
    # A git worktree may lie one folder deeper than the repository.
    places.append(_REPOSITORY.parent.parent / "shared")
    for place in places:
        if place is not None and Path(place).is_dir():
            return Path(place)
    pytest.skip(f"no shared data: {_REPOSITORY.parent / 'shared'} is absent")


@pytest.fixture(scope="session")
def corpus(shared: Path) -> Path:
    """Real FlashInfer-Bench documents; its README says what is where."""
    if not (shared / "corpus").is_dir():
        pytest.skip(f"no corpus in {shared}")
    return shared / "corpus"


@pytest.fixture(scope="session")
def golden(corpus: Path) -> Path:
    """Expected objects, vectors and odd cases, made by the public index's own code."""
    if not (corpus / "golden").is_dir():
        pytest.skip(f"no golden data in {corpus}")
    return corpus / "golden"


@pytest.fixture(scope="session")
def flashinfer_trace(corpus: Path) -> Ingested:
    """The rows of the corpus' main dataset at the revision of the golden data."""
    return ingest(corpus / "flashinfer-trace", revision=GOLDEN_REVISION, name=PUBLIC)


@pytest.fixture(scope="session")
def torch_python() -> str:
    """An interpreter that has torch: KERNELINDEX_TORCH_PYTHON, else this one; else skip."""
    python = os.environ.get("KERNELINDEX_TORCH_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip(f"{python} has no torch; set KERNELINDEX_TORCH_PYTHON to one that has")
    return python


@pytest.fixture(scope="session")
def sample_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled sample in three publications, with its database; to be read only."""
    root = tmp_path_factory.mktemp("sample") / "warehouse"
    ingest_by_author(root)
    return root


@pytest.fixture
def warehouse_copy(sample_warehouse: Path, tmp_path: Path) -> Path:
    """The sample's warehouse, moved elsewhere, to be changed or damaged."""
    root = tmp_path / "copy of the warehouse"
    shutil.copytree(sample_warehouse, root)
    return root
