"""Compaction loses nothing, disturbs no reader, and what it replaces goes when it may."""

import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from assets.leaderboards.build import build_database
from assets.leaderboards.history import database_as_of
from assets.tables.compaction import compact, remove_replaced
from assets.tables.database import published_rows
from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault
from assets.tables.integrity import examine_files
from assets.tables.leases import reading
from assets.tables.reader import open_database_file
from assets.tables.repair import repair_files
from assets.tables.row_checks import examine_rows
from assets.tables.warehouse import Warehouse
from tests.warehouses import ingest_into

ROOT = Path(__file__).resolve().parent.parent.parent
NOW = timedelta(0)


@pytest.fixture
def warehouse(warehouse_copy: Path) -> Warehouse:
    return Warehouse(warehouse_copy)


def runs(warehouse: Warehouse) -> list[tuple[object, ...]]:
    with warehouse.connect() as connection:
        rows = published_rows(connection, warehouse, "runs")
        return rows.project("run_digest, publication_id, published_at").order("all").fetchall()


def test_a_generation_holds_every_row_with_its_publication(warehouse: Warehouse) -> None:
    before, records = runs(warehouse), warehouse.publications()
    done = compact(warehouse)
    assert done is not None
    assert done.files_after < done.files_before
    assert runs(warehouse) == before
    assert warehouse.publications() == records
    assert examine_files(warehouse).findings == []
    assert examine_rows(warehouse).findings == []


def test_there_is_nothing_to_compact_twice(warehouse: Warehouse) -> None:
    assert compact(warehouse) is not None
    assert compact(warehouse) is None


def test_the_next_publication_follows_a_generation(warehouse: Warehouse) -> None:
    compact(warehouse)
    remove_replaced(warehouse, NOW)
    assert ingest_into(warehouse.root, build=False) is None
    assert examine_files(warehouse).findings == []
    assert len(warehouse.publications()) == 4


def test_a_reader_of_the_old_files_keeps_working(warehouse: Warehouse) -> None:
    with reading(warehouse), warehouse.connect() as connection:
        rows = published_rows(connection, warehouse, "runs")
        compact(warehouse)
        removal = remove_replaced(warehouse, NOW)
        assert removal.removed == ()
        assert {reason for _, reason in removal.kept} == {"a process is reading it"}
        assert len(rows.fetchall()) == 102
    assert len(remove_replaced(warehouse, NOW).removed) == 3
    assert examine_files(warehouse).findings == []


def test_a_lease_ends_with_the_process_that_holds_it(warehouse: Warehouse) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from assets.tables.leases import reading\n"
        "from assets.tables.warehouse import Warehouse\n"
        "with reading(Warehouse(Path(sys.argv[1]))):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", program, str(warehouse.root)], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"held\n"
        compact(warehouse)
        assert remove_replaced(warehouse, NOW).removed == ()
    finally:
        reader.kill()
        reader.wait()
        if reader.stdout is not None:
            reader.stdout.close()
    assert len(remove_replaced(warehouse, NOW).removed) == 3


def test_replaced_files_stay_for_a_week(warehouse: Warehouse) -> None:
    compact(warehouse)
    removal = remove_replaced(warehouse)
    assert removal.removed == ()
    assert len(removal.kept) == 3


def test_a_damaged_generation_is_made_again_while_its_publications_are_there(
    warehouse: Warehouse,
) -> None:
    before = runs(warehouse)
    compact(warehouse)
    [path] = warehouse.compacted_files("runs")
    Path(path).write_bytes(b"damaged")
    found = examine_files(warehouse).findings
    assert {finding.fault for finding in found} == {Fault.DAMAGED_FILE}
    assert repair_files(warehouse, found).impossible == []
    assert examine_files(warehouse).findings == []
    assert runs(warehouse) == before


def test_a_generation_that_lost_its_record_is_made_again(warehouse: Warehouse) -> None:
    before, records = runs(warehouse), warehouse.publications()
    compact(warehouse)
    (warehouse.folder_of_generation(1) / "generation.json").write_text("{")
    found = examine_files(warehouse).findings
    assert {finding.fault for finding in found} == {Fault.NO_RECORD}
    assert repair_files(warehouse, found).impossible == []
    assert (runs(warehouse), warehouse.publications()) == (before, records)


def test_a_damaged_generation_without_them_is_made_again_from_raw_bytes(
    warehouse: Warehouse,
) -> None:
    before, records = runs(warehouse), warehouse.publications()
    compact(warehouse)
    remove_replaced(warehouse, NOW)
    [path] = warehouse.compacted_files("runs")
    Path(path).write_bytes(b"damaged")
    assert repair_files(warehouse, examine_files(warehouse).findings).impossible == []
    assert examine_files(warehouse).findings == []
    assert runs(warehouse) == before
    assert [record.publication_id for record in warehouse.publications()] == [
        record.publication_id for record in records
    ]


def test_a_damaged_generation_that_nothing_can_make_again_is_said_and_left(
    warehouse: Warehouse,
) -> None:
    compact(warehouse)
    remove_replaced(warehouse, NOW)
    shutil.rmtree(warehouse.root / "raw")
    warehouse = Warehouse(warehouse.root)
    [path] = warehouse.compacted_files("runs")
    Path(path).write_bytes(b"damaged")
    found = [f for f in examine_files(warehouse).findings if f.fault is Fault.DAMAGED_FILE]
    repairs = repair_files(warehouse, found)
    assert len(repairs.impossible) == 1
    assert Path(path).read_bytes() == b"damaged"


def test_nothing_is_removed_that_a_damaged_generation_replaces(warehouse: Warehouse) -> None:
    compact(warehouse)
    [path] = warehouse.compacted_files("runs")
    Path(path).write_bytes(b"damaged")
    with pytest.raises(WarehouseError, match="is damaged, so nothing"):
        remove_replaced(warehouse, NOW)
    assert len(warehouse.publication_folders()) == 4


@pytest.mark.parametrize("compacted", [False, True])
def test_the_past_is_answered_as_it_was(warehouse: Warehouse, compacted: bool) -> None:
    first = warehouse.publications()[1]
    if compacted:
        compact(warehouse)
        remove_replaced(warehouse, NOW)
        build_database(warehouse)
    past = database_as_of(warehouse, "1")
    with open_database_file(past) as connection:
        found = connection.sql("select distinct author_directory from runs").fetchall()
        publications = connection.sql("select max(publication_id) from publications").fetchall()
    assert found == [("baseline",)]
    assert publications == [(first.publication_id,)]
    with duckdb.connect(str(warehouse.database), read_only=True) as connection:
        assert connection.sql("select count(*) from runs").fetchall() == [(102,)]
    written = past.stat().st_ino
    assert database_as_of(warehouse, first.publication_id) == past
    assert past.stat().st_ino == written
