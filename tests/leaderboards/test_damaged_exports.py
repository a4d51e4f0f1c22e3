"""Any file at all ends the verification of a catalog in an answer of one line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from assets.answers.export import export_catalog
from assets.leaderboards.catalog_export import CatalogExportError, read_catalog_export
from assets.leaderboards.verify_catalog import verify_catalog
from assets.tables.warehouse import Warehouse
from tests.damage import damaged_bytes, damaged_json

CHECKED = ("operations", "workloads", "implementations", "benchmark_runs", "record_events")


@pytest.fixture(scope="module")
def small(sample_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of an export with two runs."""
    path = tmp_path_factory.mktemp("small") / "all.jsonl"
    export_catalog(Warehouse(sample_warehouse), path)
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    runs = [item["row"] for item in rows if item["table"] == "benchmark_runs"][:2]
    kept = {run[name] for run in runs for name in ("id", "workloadId", "implementationId")}
    kept |= {
        item["row"]["operationId"]
        for item in rows
        if item["row"].get("id") in kept and "operationId" in item["row"]
    }
    return [
        json.dumps(item).encode()
        for item in rows
        if item["row"].get("id") in kept or item["row"].get("runId") in kept
    ]


def variants(lines: list[bytes], count: int) -> Iterator[tuple[str, bytes]]:
    yield from damaged_bytes(b"\n".join(lines), 60)
    for table in CHECKED:
        number = next(n for n, line in enumerate(lines) if json.loads(line)["table"] == table)
        row = json.loads(lines[number])
        for name, line in damaged_json(row, count):
            yield f"{table} {name}", b"\n".join([*lines[:number], line, *lines[number + 1 :]])


def refusal(path: Path, *, whole: bool) -> str:
    """The line in which a file is refused; empty where it is read."""
    try:
        verify_catalog(path) if whole else read_catalog_export(path)
    except CatalogExportError as error:
        return str(error)
    return ""


def check(path: Path, name: str, data: bytes, *, whole: bool) -> None:
    path.write_bytes(data)
    try:
        line = refusal(path, whole=whole)
    except Exception as error:
        error.add_note(f"the variant: {name}")
        raise
    assert "\n" not in line, name
    assert len(line) < 1000, name


def test_any_damage_is_read_or_refused_in_one_line(small: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    for name, data in variants(small, 100):
        check(path, name, data, whole=False)


@pytest.mark.integration
def test_any_damage_is_verified_or_refused_in_one_line(small: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    for name, data in variants(small, 60):
        check(path, name, data, whole=True)


def test_a_damaged_archive_is_refused_in_one_line(small: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl.zst"
    packed = pa.Codec("zstd").compress(b"\n".join(small), asbytes=True)
    for name, data in damaged_bytes(packed, 100):
        check(path, name, data, whole=False)


def test_a_row_says_what_it_lacks(small: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    rows = [json.loads(line) for line in small]
    run = next(item["row"] for item in rows if item["table"] == "benchmark_runs")
    run["manifest"]["environment"]["spec"]["hardware"]["product"] = 7
    path.write_text("\n".join(json.dumps(item) for item in rows))
    place = r"manifest\.environment\.spec\.hardware\.product input should be a valid string"
    line = rf"export\.jsonl:\d+: a row of benchmark_runs: {place}"
    with pytest.raises(CatalogExportError, match=line):
        read_catalog_export(path)


def test_an_identifier_that_occurs_twice_is_refused(small: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"\n".join([*small, small[0]]))
    with pytest.raises(CatalogExportError, match=r"has .* twice"):
        read_catalog_export(path)
