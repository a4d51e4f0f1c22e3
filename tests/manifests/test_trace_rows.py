"""Logs of traces become artifacts: each once, short ones in parts of their own."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from assets.manifests.canonical import sha256_digest
from assets.manifests.normalize import Known, normalize
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore
from tests.builders import Json, dataset, trace

LONG = "é and \ud83d\ude00, " * 200


def logs_of(root: Path, *logs: str) -> tuple[list[str | None], dict[str, list[Json]]]:
    """Log digests of the runs in order, and artifact rows by part, of traces with these logs."""
    traces = [
        trace(evaluation__log=log, evaluation__timestamp=f"2025-10-21T13:37:{second:02}")
        for second, log in enumerate(logs)
    ]
    store = RawStore(root / "raw")
    snapshot = pull(
        str(dataset(root / "dataset", traces=traces)), revision=None, authors=None, store=store
    )
    normalize(snapshot, store, root / "rows", Known(), processes=1)
    [runs] = (root / "rows/runs").glob("*.parquet")
    rows = {
        part.stem.partition("-")[2]: pq.read_table(part).to_pylist()
        for part in (root / "rows/artifacts").glob("*.parquet")
    }
    return pq.read_table(runs)["log_digest"].to_pylist(), rows


def test_each_log_is_an_artifact_once_with_the_place_of_the_first(tmp_path: Path) -> None:
    logs = ["no", LONG, LONG, "", "no", LONG + "!", "no", LONG]
    digests, rows = logs_of(tmp_path, *logs)
    known = [log.encode("utf-16", "surrogatepass").decode("utf-16") for log in logs]
    assert digests == [sha256_digest(log) if log else None for log in known]
    found = {
        row["artifact_digest"]: (row["content"], row["size_bytes"], row["line"])
        for part in rows.values()
        for row in part
        if row["kind"] == "log"
    }
    assert found == {
        sha256_digest(log): (log, len(log.encode()), known.index(log) + 1) for log in known if log
    }
    assert sum(row["kind"] == "log" for part in rows.values() for row in part) == len(found)


def test_short_logs_lie_apart_from_long_ones(tmp_path: Path) -> None:
    _, rows = logs_of(tmp_path, "x" * 1024, "x" * 1025, "y")
    sizes = {part: [row["size_bytes"] for row in found] for part, found in rows.items()}
    assert sizes["traces-000000-short"] == [1024, 1]
    assert sizes["traces-000000"] == [1025]


def test_a_log_of_another_length_of_bytes_is_another_log(tmp_path: Path) -> None:
    # As many characters, as many bytes, one of both: neither may be taken for another.
    digests, _ = logs_of(tmp_path, "aé", "éa", "ab", "aé", "aé")
    assert len(set(digests)) == 3
    assert digests[0] == digests[3] == digests[4]


def test_a_file_with_many_rows_goes_to_several_parts_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.manifests.trace_rows._MOST_OBJECTS", 10)
    monkeypatch.setattr("assets.manifests.trace_rows._MOST_PART_BYTES", 100_000)
    monkeypatch.setattr("assets.manifests.trace_rows._MOST_CASES", 7)
    traces = [
        trace(
            evaluation__log=f"{number} " * 1000,
            evaluation__timestamp=f"2025-10-21T13:{number // 60:02}:{number % 60:02}",
            workload__axes={"batch": 1 + number},
        )
        for number in range(100)
    ]
    store = RawStore(tmp_path / "raw")
    snapshot = pull(
        str(dataset(tmp_path / "dataset", traces=traces)), revision=None, authors=None, store=store
    )
    normalize(snapshot, store, tmp_path / "rows", Known(), processes=1)
    parts = sorted((tmp_path / "rows/runs").glob("*.parquet"))
    assert len(parts) > 5
    lines = [line for part in parts for line in pq.read_table(part)["line"].to_pylist()]
    assert sorted(lines) == list(range(1, 101))
    cases = pq.read_table(tmp_path / "rows/workloads")["workload_digest"].to_pylist()
    assert len(set(cases)) == 100
