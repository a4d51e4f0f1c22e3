"""Reading with several processes comes to the same as reading with one."""

from pathlib import Path
from threading import Lock

import pyarrow.dataset as ds
import pytest

from assets.manifests.catalog import Catalog
from assets.manifests.implementations import DatasetOrigin
from assets.manifests.normalize import Known, normalize
from assets.manifests.reading import Reading, chunks_of, reading_processes
from assets.traces.errors import DatasetError
from assets.traces.pull import SAMPLE, pull
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile


def file(number: int, size_bytes: int) -> DatasetFile:
    return DatasetFile(
        path=f"traces/a/b/{number}.jsonl",
        digest=f"sha256:{number:064x}",
        blob_id=f"{number:040x}",
        size_bytes=size_bytes,
    )


def test_every_file_is_in_exactly_one_chunk() -> None:
    files = [file(number, number * 100_000) for number in range(200)]
    chunks = sorted(chunks_of(files, 2))
    assert [item for _, chunk in chunks for item in chunk] == files
    assert [number for number, _ in chunks] == list(range(len(chunks)))
    assert len(chunks) >= 2


def test_large_chunks_come_before_small_ones() -> None:
    sizes = [
        sum(item.size_bytes for item in chunk)
        for _, chunk in chunks_of([file(1, 10), file(2, 9_000_000), file(3, 2_000_000)], 2)
    ]
    assert sizes == [9_000_010, 2_000_000]


def test_no_files_are_no_chunks() -> None:
    assert chunks_of([], 4) == []


def test_two_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.manifests.normalize._IN_PROCESS_BYTES", 0)
    store = RawStore(tmp_path / "raw")
    snapshot = pull(SAMPLE, revision=None, authors=None, store=store)
    found = {}
    for processes in (1, 2):
        staging = tmp_path / str(processes)
        outcome = normalize(snapshot, store, staging, Known(), processes=processes)
        digests = ds.dataset(staging / "runs").to_table(columns=["run_digest"])
        found[processes] = outcome.counts, sorted(digests["run_digest"].to_pylist())
    assert found[1] == found[2]
    assert len(found[1][1]) == 102


def test_runs_are_the_same_however_many_are_kept_as_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RawStore(tmp_path / "raw")
    snapshot = pull(SAMPLE, revision=None, authors=None, store=store)
    found = []
    for number in (7, 1_000_000):
        monkeypatch.setattr("assets.manifests.trace_rows._MOST_OBJECTS", number)
        staging = tmp_path / str(number)
        normalize(snapshot, store, staging, Known(), processes=1)
        found.append(
            [
                ds.dataset(staging / table).to_table().to_pylist()
                for table in ("runs", "measurements", "artifacts")
            ]
        )
    assert found[0] == found[1]
    assert len(found[0][0]) == 102


def test_a_process_that_dies_is_an_error_and_not_a_hang(tmp_path: Path) -> None:
    store = RawStore(tmp_path / "raw")
    catalog = Catalog(DatasetOrigin("a/b", None, "0" * 40))
    reading = Reading(catalog, store.root, tmp_path, "sha256:" + "0" * 64)
    with reading_processes(1) as readers:
        readers.stop()
        with pytest.raises(DatasetError, match="ingest again"):
            readers.read(reading, [(0, [])], lambda outcomes: None)


def test_raw_bytes_that_are_gone_are_named(tmp_path: Path) -> None:
    store = RawStore(tmp_path / "raw")
    catalog = Catalog(DatasetOrigin("a/b", None, "0" * 40))
    reading = Reading(catalog, store.root, tmp_path, "sha256:" + "0" * 64)
    with reading_processes(1) as readers, pytest.raises(DatasetError, match="raw store"):
        readers.read(reading, chunks_of([file(1, 10)], 1), lambda outcomes: None)


def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.manifests.normalize._IN_PROCESS_BYTES", 0)
    store = RawStore(tmp_path / "raw")
    snapshot = pull(SAMPLE, revision=None, authors=None, store=store)
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(DatasetError, match=str(in_the_way)):
        normalize(snapshot, store, in_the_way, Known(), processes=2)


def test_an_unforeseen_fault_is_raised_and_not_a_hang(tmp_path: Path) -> None:
    store = RawStore(tmp_path / "raw")
    catalog = Catalog(DatasetOrigin("a/b", None, "0" * 40))
    reading = Reading(catalog, store.root, tmp_path, "sha256:" + "0" * 64)
    with reading_processes(1) as readers, pytest.raises((TypeError, AttributeError)):
        # Not a chunk: a lock cannot be sent to another process.
        readers.read(reading, [(0, [Lock()])], lambda outcomes: None)  # type: ignore[list-item]
