"""Local files that need not be read again."""

import os
from pathlib import Path

import pytest

from assets.traces.raw_store import RawStore
from assets.traces.seen_files import SeenFiles


@pytest.fixture
def store(tmp_path: Path) -> RawStore:
    return RawStore(tmp_path / "store")


def noted(store: RawStore, file: Path) -> SeenFiles:
    """The note after a file was read once, as the next pull finds it."""
    seen = SeenFiles(store)
    digest = store.put(file.read_bytes(), "blob")
    state = file.stat()
    # The change time cannot be set, so the clock of the note is moved instead.
    seen.note(file, state, digest, "blob", now_ns=state.st_ctime_ns + 10**10)
    seen.save()
    return SeenFiles(store)


def test_an_unchanged_file_is_known(store: RawStore, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    known = noted(store, file).get(file)
    assert known is not None
    assert (known.digest, known.blob_id, known.size_bytes) == (store.put(b"{}"), "blob", 2)


def test_a_file_that_was_written_again_is_not(store: RawStore, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    seen = noted(store, file)
    file.write_text("[]")
    os.utime(file, ns=times)
    assert seen.get(file) is None


def test_a_file_that_changed_just_now_is_not_trusted(store: RawStore, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    seen = SeenFiles(store)
    seen.note(file, file.stat(), store.put(b"{}"), "blob")
    seen.save()
    assert SeenFiles(store).get(file) is None


def test_bytes_that_the_store_lost_are_read_again(store: RawStore, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    seen = noted(store, file)
    (kept,) = store.root.glob("[0-9a-f][0-9a-f]/*.zst")
    kept.unlink()
    assert seen.get(file) is None


def test_a_damaged_note_costs_one_read(store: RawStore, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    noted(store, file)
    (store.root / "local-files.json").write_text('{"half')
    assert SeenFiles(store).get(file) is None
