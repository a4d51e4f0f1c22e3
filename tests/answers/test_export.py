"""An export is what the public index exports, and verifies itself."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from assets.answers.export import export_catalog
from assets.leaderboards.verify_catalog import verify_catalog
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Warehouse


def lines_of(path: Path) -> list[dict]:
    with pa.input_stream(str(path), compression="zstd") as stream:
        return [json.loads(line) for line in stream.read().decode().splitlines()]


@pytest.fixture
def exported(sample_warehouse: Path, tmp_path: Path) -> Path:
    path = tmp_path / "catalog.jsonl.zst"
    export_catalog(Warehouse(sample_warehouse), path)
    return path


def test_every_digest_key_rank_and_record_is_recomputed_equal(exported: Path) -> None:
    verification = verify_catalog(exported)
    assert verification.rows["benchmark_runs"] == 102
    assert verification.is_equal


def test_tables_and_fields_are_those_of_the_public_export(exported: Path, golden: Path) -> None:
    public = lines_of(golden / "kernelindex-export-flashinfer.jsonl.zst")
    ours = lines_of(exported)
    fields = {line["table"]: line["row"].keys() for line in public}
    for line in ours:
        assert line["row"].keys() == fields[line["table"]], line["table"]
    assert {line["table"] for line in ours} == fields.keys()


def test_two_exports_are_equal_and_identifiers_refer(
    exported: Path, sample_warehouse: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.jsonl.zst"
    counts = export_catalog(Warehouse(sample_warehouse), again)
    assert again.read_bytes() == exported.read_bytes()
    lines = lines_of(again)
    assert counts == Counter(line["table"] for line in lines)
    ids = {line["row"]["id"] for line in lines if "id" in line["row"]}
    for line in lines:
        for name, value in line["row"].items():
            if name.endswith("Id") and value is not None:
                assert value in ids, (line["table"], name)


def test_a_path_that_cannot_be_written_leaves_nothing(
    sample_warehouse: Path, tmp_path: Path
) -> None:
    with pytest.raises(WarehouseError, match="cannot be written"):
        export_catalog(Warehouse(sample_warehouse), tmp_path / "no" / "folder.jsonl")
    assert list(tmp_path.iterdir()) == []
