"""Damage is found, named, and repaired from raw bytes where that is possible."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.leaderboards.reproduction import examine_database
from assets.tables.findings import Fault
from assets.tables.integrity import examine_files
from assets.tables.repair import repair_files
from assets.tables.row_checks import examine_rows
from assets.tables.warehouse import GENESIS, Warehouse

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def warehouse(warehouse_copy: Path) -> Warehouse:
    return Warehouse(warehouse_copy)


def folder(warehouse: Warehouse, number: int = -1) -> Path:
    return warehouse.folder_of(warehouse.publications()[number].publication_id)


def faults(warehouse: Warehouse) -> set[Fault]:
    return {finding.fault for finding in examine_files(warehouse).findings}


def rows_of(warehouse: Warehouse, table: str) -> list[dict[str, object]]:
    rows = [row for path in warehouse.files(table) for row in pq.read_table(path).to_pylist()]
    return sorted(rows, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def give_other_columns(path: Path) -> None:
    pq.write_table(pa.table({"another": [1]}), path)


def test_a_whole_warehouse_has_no_findings(warehouse: Warehouse) -> None:
    assert examine_files(warehouse).findings == []
    assert examine_rows(warehouse).findings == []
    assert examine_database(warehouse).findings == []


@pytest.mark.parametrize(
    ("damage", "fault", "number"),
    [
        (flip_a_byte, Fault.DAMAGED_FILE, 1),
        (flip_a_byte, Fault.DAMAGED_FILE, -1),
        (truncate, Fault.DAMAGED_FILE, 2),
        (Path.unlink, Fault.MISSING_FILE, -1),
        (give_other_columns, Fault.OTHER_SCHEMA, -1),
    ],
)
def test_a_damaged_file_is_named_and_made_again_with_the_same_rows(
    warehouse: Warehouse, damage: Callable[[Path], None], fault: Fault, number: int
) -> None:
    before = {table: rows_of(warehouse, table) for table in ("runs", "implementations")}
    path = folder(warehouse, number) / "runs-00000.parquet"
    damage(path)
    [finding] = examine_files(warehouse).findings
    assert (finding.fault, finding.where) == (fault, str(path))

    repairs = repair_files(warehouse, [finding])
    assert repairs.impossible == []
    assert examine_files(warehouse).findings == []
    assert {table: rows_of(warehouse, table) for table in before} == before


def test_a_lost_record_is_made_again_from_the_files(warehouse: Warehouse) -> None:
    record = warehouse.publications()[1]
    (folder(warehouse, 1) / "publication.json").write_text("{")
    found = examine_files(warehouse).findings
    assert Fault.NO_RECORD in {finding.fault for finding in found}
    repair_files(warehouse, found)
    assert warehouse.publications()[1] == record


def test_the_empty_first_publication_is_made_again(warehouse: Warehouse) -> None:
    shutil.rmtree(warehouse.folder_of(GENESIS))
    found = examine_files(warehouse).findings
    assert {finding.fault for finding in found} == {Fault.MISSING_PUBLICATION}
    repair_files(warehouse, found)
    assert faults(warehouse) == set()


def test_a_removed_publication_is_named(warehouse: Warehouse) -> None:
    shutil.rmtree(folder(warehouse, 1))
    [finding] = examine_files(warehouse).findings
    assert finding.fault is Fault.MISSING_PUBLICATION
    assert "number 1" in finding.message


def test_half_a_publication_of_a_crash_is_a_leftover_and_goes(warehouse: Warehouse) -> None:
    half = warehouse.building_folder("00000009-20300101T000000Z")
    half.mkdir(parents=True)
    (half / "runs-00000.parquet").write_bytes(b"PAR1")
    database = warehouse.root / ".kernelindex.duckdb.building"
    database.write_bytes(b"half")
    found = examine_files(warehouse).findings
    assert {finding.where for finding in found} == {str(half), str(database)}
    repair_files(warehouse, found)
    assert not half.exists()
    assert not database.exists()


def test_a_run_in_progress_is_no_leftover_and_one_of_a_dead_process_is(
    warehouse: Warehouse,
) -> None:
    warehouse.staging("a-run").joinpath("snapshot.json").write_text("{}")
    assert faults(warehouse) == set()
    dead = warehouse.root / "staging" / "a-dead-run"
    dead.mkdir()
    assert [f.where for f in examine_files(warehouse).findings] == [str(dead)]
    warehouse.prepare()
    assert not dead.exists()
    assert (warehouse.root / "staging" / "a-run" / "snapshot.json").is_file()


def test_a_staging_folder_is_held_until_its_process_is_killed(warehouse: Warehouse) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from assets.tables.warehouse import Warehouse\n"
        "Warehouse(Path(sys.argv[1])).staging('a-run'); print('held', flush=True); time.sleep(60)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(warehouse.root)], cwd=ROOT, stdout=subprocess.PIPE
    )
    folder = warehouse.root / "staging" / "a-run"
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == b"held\n"
        assert warehouse.remove_dead_runs() == []
        assert folder.is_dir()
    finally:
        run.kill()
        run.wait()
        if run.stdout is not None:
            run.stdout.close()
    assert warehouse.remove_dead_runs() == [folder]
    assert not folder.exists()


def test_raw_bytes_that_are_gone_or_damaged_are_named(warehouse: Warehouse) -> None:
    gone, damaged, *_ = warehouse.store.digests()
    for digest in (gone, damaged):
        path = warehouse.root / "raw" / digest[7:9] / f"{digest[7:]}.zst"
        path.unlink() if digest == gone else path.write_bytes(b"nothing of the kind")
    assert {Fault.DAMAGED_RAW, Fault.MISSING_RAW} <= faults(warehouse)


def test_what_cannot_be_made_again_is_said_and_left_alone(warehouse: Warehouse) -> None:
    path = folder(warehouse) / "runs-00000.parquet"
    flip_a_byte(path)
    damaged = path.read_bytes()
    shutil.rmtree(warehouse.root / "raw")
    fresh = Warehouse(warehouse.root)
    repairs = repair_files(fresh, examine_files(fresh).findings)
    assert len(repairs.impossible) == 1
    assert "pull the dataset again" in repairs.impossible[0]
    assert path.read_bytes() == damaged


def test_a_file_that_no_record_lists_is_named(warehouse: Warehouse) -> None:
    strays = [folder(warehouse) / "stray.parquet", warehouse.publications_folder / "stray"]
    for stray in strays:
        stray.write_bytes(b"")
    assert [f.where for f in examine_files(warehouse).findings] == [str(path) for path in strays]


def rewrite(warehouse: Warehouse, table: str, change: Callable[[dict], object]) -> None:
    """Change the first row of a table's first file, and its record to match."""
    path = folder(warehouse, 1) / f"{table}-00000.parquet"
    stored = pq.read_table(path)
    rows = stored.to_pylist()
    change(rows[0])
    pq.write_table(pa.Table.from_pylist(rows, schema=stored.schema), path)


@pytest.mark.parametrize(
    ("table", "column", "value", "fault", "where"),
    [
        ("runs", "canonical_json", "{}", Fault.WRONG_DIGEST, "runs"),
        ("runs", "primary_value", 1, Fault.WRONG_COLUMN, "runs.primary_value"),
        ("runs", "operation_digest", "sha256:0", Fault.BROKEN_REFERENCE, "runs.operation_digest"),
        ("artifacts", "content", "other", Fault.WRONG_DIGEST, "artifacts"),
        (
            "implementations",
            "license_concluded",
            "MIT",
            Fault.UNCONCLUDED_LICENSE,
            "implementations.license_concluded",
        ),
        ("artifacts", "license", "MIT", Fault.UNCONCLUDED_LICENSE, "artifacts.license"),
    ],
)
def test_rows_that_break_a_rule_are_found(
    warehouse: Warehouse, table: str, column: str, value: object, fault: Fault, where: str
) -> None:
    rewrite(warehouse, table, lambda row: row.update({column: value}))
    found = examine_rows(warehouse).findings
    assert (fault, where) in {(finding.fault, finding.where) for finding in found}


def test_a_group_of_two_workloads_is_found(warehouse: Warehouse) -> None:
    key = pq.read_table(folder(warehouse, 1) / "runs-00000.parquet")["comparison_key"][-1].as_py()
    rewrite(warehouse, "runs", lambda row: row.update({"comparison_key": key}))
    found = examine_rows(warehouse).findings
    assert Fault.MIXED_GROUP in {finding.fault for finding in found}


def test_a_damaged_an_old_and_a_wrong_database_are_told_apart(warehouse: Warehouse) -> None:
    import duckdb

    from assets.leaderboards.build import build_database
    from tests.warehouses import ingest_into

    with duckdb.connect(str(warehouse.database)) as connection:
        connection.execute("update run_rank_facts set rank = 7 where rank = 1")
    findings = examine_database(warehouse).findings
    assert {finding.fault for finding in findings} == {Fault.WRONG_TABLE}
    # Two views show the rank.
    assert [finding.where for finding in findings] == [
        "run_rank_facts",
        "ranked_runs",
        "run_dossiers",
    ]

    with warehouse.database.open("r+b") as stream:
        stream.write(b"\0" * 8192)
    [finding] = examine_database(warehouse).findings
    assert finding.fault is Fault.NO_DATABASE

    build_database(warehouse)
    ingest_into(warehouse.root, "kernelindex-triton", build=False)
    assert [f.fault for f in examine_database(warehouse).findings] == [Fault.OLD_DATABASE]
