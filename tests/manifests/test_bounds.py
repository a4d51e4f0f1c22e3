"""What one file may cost: faults, messages and memory have bounds, whatever the file holds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from assets.manifests.quarantine import MOST_MESSAGE_CHARACTERS
from assets.traces.lines import MOST_DOCUMENT_BYTES
from tests.builders import Ingested, assert_sums_add_up, dataset, ingest, trace

MIB = 1024**2
PEAK = """
import re, sys
from pathlib import Path
from assets.manifests.normalize import Known, normalize
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore
root = Path(sys.argv[1])
store = RawStore(root / "raw")
snapshot = pull(str(root / "dataset"), revision=None, authors=None, store=store)
outcome = normalize(snapshot, store, root / "rows", Known(), processes=1)
# Not getrusage, which counts what the process was forked from.
print(int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def ingested(root: Path, traces: list[object] | bytes) -> Ingested:
    return ingest(dataset(root / "dataset", traces=traces))


def test_a_file_is_read_no_further_than_its_many_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("trace_files", "catalog"):
        monkeypatch.setattr(f"assets.manifests.{module}.MOST_FAULTS_A_FILE", 5)
    found = ingested(tmp_path, [trace(), *[{"x": n} for n in range(5)], {"y": 1}, trace()])
    assert found.reasons == [*["MISSING_FIELD"] * 5, "TOO_MANY_FAULTS"]
    assert found.problems[-1][1] == 7
    assert len(found["runs"]) == 1
    assert_sums_add_up(found)


def test_a_file_of_definitions_is_read_no_further_than_its_many_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.manifests.catalog.MOST_FAULTS_A_FILE", 3)
    files = {
        "definitions/toy/many.jsonl": "\n".join(['{"name": 1}'] * 9),
        "solutions/ann/many.jsonl": "\n".join(['{"name": 1}'] * 9),
    }
    found = ingest(dataset(tmp_path / "dataset", files))
    assert found.reasons.count("TOO_MANY_FAULTS") == 2
    assert len(found.reasons) == 8
    assert_sums_add_up(found)


def test_a_document_that_is_too_large_is_in_quarantine_with_its_line(tmp_path: Path) -> None:
    large = trace(evaluation__log="x" * MOST_DOCUMENT_BYTES)
    found = ingested(tmp_path, [trace(), large, trace(evaluation__timestamp="2025-10-22T00:00:00")])
    [(path, line, reason)] = [(p, n, str(r)) for p, n, r in found.problems]
    assert (line, reason) == (2, "DOCUMENT_TOO_LARGE"), path
    assert len(found["runs"]) == 2


def test_a_message_does_not_repeat_a_name_of_megabytes(tmp_path: Path) -> None:
    found = ingested(tmp_path, [trace(solution="s" * MIB)])
    [item] = found["quarantine"]
    assert item["reason"] == "UNKNOWN_SOLUTION"
    assert len(item["message"]) == MOST_MESSAGE_CHARACTERS + 1


def lines_of(line: str) -> bytes:
    data = line.encode() + b"\n"
    return (data * (63 * MIB // len(data) + 1))[: 63 * MIB]


def worst(kind: str) -> bytes:
    text = json.dumps(trace(evaluation__correctness__extra={"a": 1}))
    match kind:
        case "empty objects":
            return lines_of(text.replace('{"a": 1}', '{"a": [' + "{}," * 980_000 + "{}]}"))
        case "axes":
            many = "".join(f'"q{number}": 1,' for number in range(200_000))
            return lines_of(text.replace('"axes": {', '"axes": {' + many, 1))
        case "one log":
            return json.dumps(trace(evaluation__log="x" * 62 * MIB)).encode()
        case "one array":
            return b"[" + lines_of(text + ",").rstrip(b",\n") + b"]"
        case "never closed":
            return lines_of('{"a":[')
    raise AssertionError(kind)


@pytest.mark.integration
@pytest.mark.parametrize(
    "kind", ["empty objects", "axes", "one log", "one array", "never closed", "distinct workloads"]
)
def test_the_worst_file_within_the_limits_takes_less_than_500_mb(tmp_path: Path, kind: str) -> None:
    root = dataset(tmp_path / "dataset")
    if kind == "distinct workloads":
        data = "\n".join(
            json.dumps(trace(workload__uuid=f"{number}" + "z" * 4000)) for number in range(14_000)
        ).encode()
    else:
        data = worst(kind)
    assert 50 * MIB < len(data) < 64 * MIB
    place = root / "traces/ann/toy_add/large.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    ran = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert int(ran.stdout) < 500
