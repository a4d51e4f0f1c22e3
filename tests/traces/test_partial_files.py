import os
import time

import pytest

from assets.traces.errors import TransientDatasetError
from assets.traces.partial_files import partial_file, remove_leftovers


def test_what_arrived_is_found_again_after_a_failure_and_gone_after_success(tmp_path):
    interrupted = partial_file(tmp_path / "p", "a")
    _, stream = interrupted.__enter__()
    stream.write(b"half")
    assert interrupted.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None) is not True
    with partial_file(tmp_path / "p", "a") as (path, stream):
        stream.seek(0)
        assert stream.read() == b"half"
        assert path.exists()
    assert not path.exists()


def test_only_one_may_fetch_a_blob_at_a_time(tmp_path):
    with partial_file(tmp_path / "p", "a"):
        with (
            pytest.raises(TransientDatasetError, match="another process is downloading it"),
            partial_file(tmp_path / "p", "a"),
        ):
            pass
        with partial_file(tmp_path / "p", "b"):
            pass


def test_leftovers_of_stored_blobs_and_old_ones_are_removed_but_never_those_in_use(tmp_path):
    for name in ("stored", "wanted", "old"):
        (tmp_path / f"{name}.part").touch()
    month_ago = time.time() - 30 * 24 * 3600
    os.utime(tmp_path / "old.part", (month_ago, month_ago))
    with partial_file(tmp_path, "busy"):
        remove_leftovers(tmp_path, lambda blob_id: blob_id in ("stored", "busy"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["busy.part", "wanted.part"]


def test_without_a_folder_there_are_no_leftovers(tmp_path):
    remove_leftovers(tmp_path / "none", lambda blob_id: True)
