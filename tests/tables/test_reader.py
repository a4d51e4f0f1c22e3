"""A database that cannot be opened: who is waited for, and what is built anew."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.tables.errors import WarehouseError
from assets.tables.reader import open_database_file

HOLD = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A database file that another process has open for writing, and that process."""
    path = tmp_path / "kernelindex.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield path, process.pid
        process.communicate(b"\n")


def test_a_database_that_another_process_writes_to_names_that_process(
    holder: tuple[Path, int],
) -> None:
    path, pid = holder
    with pytest.raises(WarehouseError) as error, open_database_file(path):
        pass
    assert f"process {pid} (" in error.value.message
    assert "wait until that ends" in error.value.message
    assert "--repair" not in error.value.message


def test_a_damaged_database_in_a_folder_named_lock_is_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "lock" / "kernelindex.duckdb"
    path.parent.mkdir()
    path.write_bytes(os.urandom(8192))
    with (
        pytest.raises(WarehouseError, match="doctor --repair` builds it anew"),
        open_database_file(path),
    ):
        pass
