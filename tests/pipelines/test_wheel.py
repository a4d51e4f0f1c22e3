"""An installed wheel works as the checkout does, from any directory."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# Needs git and what builds wheels, and takes half a minute of a suite that people run often.
pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_wheel_ingests_its_own_sample(tmp_path: Path) -> None:
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(source)], check=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    installed, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KERNELINDEX_WAREHOUSE", "DAGSTER_HOME", "KERNELINDEX_DATASET")
    }
    done = subprocess.run(
        [sys.executable, "-c", "from pipelines.cli import main; main()", "ingest", "--json"],
        cwd=elsewhere,
        env={**environment, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "warehouse" / "kernelindex.duckdb").is_file()
    assert (elsewhere / ".dagster" / "dagster.yaml").is_file()
