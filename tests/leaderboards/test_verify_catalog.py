import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from assets.leaderboards.catalog_export import CatalogExportError, read_catalog_export
from assets.leaderboards.verify_catalog import CatalogVerification, render, verify_catalog

EXPORT = "kernelindex-export-flashinfer.jsonl.zst"


@pytest.fixture(scope="module")
def verification(golden: Path) -> CatalogVerification:
    return verify_catalog(golden / EXPORT)


@pytest.fixture(scope="module")
def rows(golden: Path) -> list[dict]:
    with pa.input_stream(str(golden / EXPORT), compression="zstd") as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_everything_stated_is_recomputed_to_the_last_row(verification):
    assert verification.is_equal
    assert {c.name: c.equal for c in verification.comparisons} == {
        "operations.semanticDigest": 190,
        "workloads.workloadDigest": 1425,
        "implementations.implementationDigest": 115,
        "benchmark_runs.runDigest": 1937,
        "benchmark_runs.protocolKey": 1937,
        "benchmark_runs.environmentKey": 1937,
        "benchmark_runs.correctnessKey": 1937,
        "benchmark_runs.comparisonKey": 1937,
        "benchmark_runs.primaryValue": 1937,
        "benchmark_runs.implementation digest in the manifest": 1937,
        "benchmark_runs.workload digest in it": 1937,
        "record_events": 1622,
        "rank of each group's record holder": 1425,
    }


def test_the_mistakes_that_right_digests_hide_are_counted(verification):
    counts = {m.code: (m.count, m.of) for m in verification.mistakes}
    assert counts["SOURCE_OF_OTHER_DEFINITION"] == (43, 1937)
    assert counts["MERGED_WORKLOADS"] == (64, 1425)
    assert counts["MIXED_INPUTS"] == (134, 1937)
    assert counts["UNKNOWN_ARCHITECTURE"] == (1937, 1937)
    assert counts["REPEATED_PAIRS"] == (350, 1489)
    assert counts["LOOSE_TOLERANCE"] == (674, 1937)
    apart = next(m for m in verification.mistakes if m.code == "REFERENCES_APART")
    assert apart.examples[0] == "45.8 times apart"


def test_the_report_can_be_read_in_a_terminal(verification):
    written = io.StringIO()
    Console(width=120, file=written).print(render(verification))
    text = written.getvalue()
    assert "benchmark_runs.runDigest" in text
    assert "43 of 1,937" in text


@pytest.mark.parametrize(
    ("table", "change", "unequal"),
    [
        ("benchmark_runs", {"runDigest": "sha256:0"}, {"benchmark_runs.runDigest": 1}),
        ("benchmark_runs", {"primaryValue": 1}, {"benchmark_runs.primaryValue": 1}),
        ("workloads", {"workloadDigest": "sha256:0"}, {"workloads.workloadDigest": 1}),
        ("record_events", {"previousRunId": "nobody"}, {"record_events": 1}),
        ("record_events", {"at": "2020-01-01T00:00:00.000Z"}, {"record_events": 1}),
    ],
)
def test_one_changed_value_is_found(tmp_path, rows, table, change, unequal):
    changed = [dict(row, row=dict(row["row"])) for row in rows]
    target = next(row for row in changed if row["table"] == table)
    target["row"].update(change)
    found = verify_catalog(write(tmp_path / "changed.jsonl", changed))
    assert not found.is_equal
    by_name = {c.name: c.unequal for c in found.comparisons}
    for name, count in unequal.items():
        assert by_name[name] == count


def test_a_record_event_that_is_missing_is_found(tmp_path, rows):
    position = next(i for i, row in enumerate(rows) if row["table"] == "record_events")
    found = verify_catalog(write(tmp_path / "cut.jsonl", rows[:position] + rows[position + 1 :]))
    events = next(c for c in found.comparisons if c.name == "record_events")
    assert (events.equal, events.unequal) == (1621, 1)
    assert "stated None" in events.examples[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows of benchmark_runs"),
        ('{"table": "sources", "row": {}}\n', "no rows of benchmark_runs"),
        ("[1]\n", ":1: not of the form"),
        ('\n{"table": \n', ":2: not JSON"),
        (
            '{"table": "workloads", "row": {"id": "w"}}\n',
            ":1: a row of workloads: operationId is missing",
        ),
    ],
)
def test_a_file_that_is_no_export_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "export.jsonl"
    path.write_text(text)
    with pytest.raises(CatalogExportError, match=message):
        read_catalog_export(path)


def test_a_file_that_is_absent_or_damaged_is_refused(tmp_path, golden):
    with pytest.raises(CatalogExportError, match="cannot be read"):
        read_catalog_export(tmp_path / "absent.jsonl")
    damaged = tmp_path / "damaged.jsonl.zst"
    damaged.write_bytes((golden / EXPORT).read_bytes()[:5000] + b"\x00" * 100)
    with pytest.raises(CatalogExportError, match="damaged"):
        read_catalog_export(damaged)


def test_a_run_without_its_workload_is_refused(tmp_path, rows):
    without = [row for row in rows if row["table"] != "workloads"]
    with pytest.raises(CatalogExportError, match="has no workload in the file"):
        read_catalog_export(write(tmp_path / "cut.jsonl", without))
