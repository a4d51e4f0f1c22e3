import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.traces.errors import RawStoreError
from assets.traces.git_objects import blob_id
from assets.traces.raw_store import RawStore, digest_of


def stored_file(store, digest):
    name = digest.removeprefix("sha256:")
    return store.root / name[:2] / f"{name}.zst"


@settings(max_examples=25)
@given(st.binary(max_size=2000))
def test_bytes_come_back_as_they_went_in(tmp_path_factory, data):
    store = RawStore(tmp_path_factory.mktemp("store"))
    digest = store.put(data)
    assert digest == digest_of(data)
    assert store.get(digest) == data
    assert list(store.digests()) == [digest]


def test_the_same_bytes_are_kept_once(tmp_path):
    store = RawStore(tmp_path)
    digest = store.put(b"same")
    before = stored_file(store, digest).stat().st_mtime_ns
    assert store.put(b"same") == digest
    assert RawStore(tmp_path).put(b"same") == digest
    assert stored_file(store, digest).stat().st_mtime_ns == before


def test_a_file_is_stored_like_its_bytes(tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(data)
    store = RawStore(tmp_path / "store")
    assert store.put_file(tmp_path / "file", "0" * 64) == digest_of(data)
    assert store.get(digest_of(data)) == data
    assert store.digest_of_blob("0" * 64) == digest_of(data)


def test_a_blob_seen_before_is_known_to_the_next_process(tmp_path):
    store = RawStore(tmp_path)
    with store.batch():
        digest = store.put(b"data", blob_id(b"data"))
    again = RawStore(tmp_path)
    assert again.digest_of_blob(blob_id(b"data")) == digest
    assert again.digest_of_blob("f" * 40) is None


def test_two_stores_on_one_folder_see_each_other_after_a_refresh(tmp_path):
    one, other = RawStore(tmp_path), RawStore(tmp_path)
    digest = one.put(b"data", blob_id(b"data"))
    other.refresh()
    assert other.digest_of_blob(blob_id(b"data")) == digest


def test_a_missing_digest_is_an_error_that_names_the_file(tmp_path):
    store = RawStore(tmp_path)
    with pytest.raises(RawStoreError, match=r"\.zst: not in the raw store"):
        store.get(digest_of(b"absent"))


@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"garbage"])
def test_damaged_bytes_are_never_returned(tmp_path, damage):
    store = RawStore(tmp_path)
    digest = store.put(b"data" * 100)
    stored_file(store, digest).write_bytes(damage)
    with pytest.raises(RawStoreError, match=r"\.zst"):
        store.get(digest)


def test_a_file_torn_before_it_was_flushed_is_dropped_and_stored_again(tmp_path):
    data = os.urandom(1000)
    store = RawStore(tmp_path)
    digest = store.put(data, blob_id(data))
    journal = (tmp_path / "blobs.index").read_text().splitlines()
    unflushed = [line for line in journal if not line.startswith("-")]
    (tmp_path / "blobs.index").write_text("\n".join(unflushed) + "\n")
    whole = stored_file(store, digest).read_bytes()
    stored_file(store, digest).write_bytes(whole[: len(whole) // 2])
    again = RawStore(tmp_path)
    assert again.digest_of_blob(blob_id(data)) is None
    assert not stored_file(store, digest).exists()
    assert again.put(data, blob_id(data)) == digest
    assert again.get(digest) == data


@settings(max_examples=25)
@given(st.integers(min_value=0, max_value=400))
def test_a_torn_journal_costs_at_most_its_last_lines(tmp_path_factory, cut):
    root = tmp_path_factory.mktemp("store")
    store = RawStore(root)
    with store.batch():
        digests = [store.put(data, blob_id(data)) for data in (b"a", b"b")]
    index = root / "blobs.index"
    index.write_bytes(index.read_bytes()[:cut])
    again = RawStore(root)
    with again.batch():
        assert [again.put(data, blob_id(data)) for data in (b"a", b"b")] == digests
        third = again.put(b"c", blob_id(b"c"))
    last = RawStore(root)
    assert [last.digest_of_blob(blob_id(d)) for d in (b"a", b"b", b"c")] == [*digests, third]
    assert len(list(last.digests())) == 3


WRITER = """
import os, sys
from pathlib import Path
from assets.traces.git_objects import blob_id
from assets.traces.raw_store import RawStore
store = RawStore(Path(sys.argv[1]))
print("ready", flush=True)
with store.batch():
    for number in range(100_000):
        data = str(number).encode() * 50
        store.put(data, blob_id(data))
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.15])
def test_a_killed_writer_leaves_only_whole_files(tmp_path, delay_s):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(delay_s)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    store = RawStore(tmp_path)
    digests = list(store.digests())
    for digest in digests:
        assert digest_of(store.get(digest)) == digest
    known = 0
    while store.digest_of_blob(blob_id(str(known).encode() * 50)) is not None:
        known += 1
    assert known >= len(digests) - 1  # all that were stored, save one cut off from its index line


def test_a_disk_that_takes_nothing_is_an_error_that_names_the_store(tmp_path):
    store = RawStore(tmp_path / "store")
    (tmp_path / "store" / "tmp").rmdir()
    with pytest.raises(RawStoreError, match="store: cannot be written"):
        store.put(b"data")
