"""What was published stays on record: a loss is named, made good, or accepted by a person."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from assets.leaderboards.build import build_database
from assets.leaderboards.reproduction import examine_database
from assets.tables.acceptance import accept_loss
from assets.tables.chain import Event, read_chain
from assets.tables.compaction import compact, remove_replaced
from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault
from assets.tables.integrity import examine_files
from assets.tables.losses import catch_up
from assets.tables.repair import Repairs, repair_files
from assets.tables.replay import replay
from assets.tables.warehouse import PUBLICATION_RECORD, Warehouse
from tests.tables.damage import (
    damage,
    double,
    flip_a_byte,
    publish_retraction,
    publish_samples,
    rows_by_publication,
)
from tests.warehouses import ingest_into

ROOT = Path(__file__).resolve().parent.parent.parent
NOW = timedelta(0)


@pytest.fixture(scope="module")
def whole(sample_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, a correction and a rerun, with the database of all; to be read only."""
    root = tmp_path_factory.mktemp("whole") / "warehouse"
    shutil.copytree(sample_warehouse, root)
    publish_retraction(Warehouse(root))
    publish_samples(Warehouse(root))
    build_database(Warehouse(root))
    return root


@pytest.fixture
def warehouse(whole: Path, tmp_path: Path) -> Warehouse:
    root = tmp_path / "warehouse"
    shutil.copytree(whole, root)
    return Warehouse(root)


def errors(warehouse: Warehouse) -> set[Fault]:
    return {finding.fault for finding in examine_files(Warehouse(warehouse.root)).errors}


def repair(warehouse: Warehouse) -> Repairs:
    fresh = Warehouse(warehouse.root)
    return repair_files(fresh, examine_files(fresh).findings)


def forget_the_chain(warehouse: Warehouse) -> None:
    """What an earlier version would have left."""
    shutil.rmtree(warehouse.root / "chain")
    for path in warehouse.publications_folder.glob(f"*/{PUBLICATION_RECORD}"):
        record = json.loads(path.read_text())
        del record["previous"]
        path.write_text(json.dumps(record))


@pytest.mark.parametrize("number", [1, 3, 4, 5])
def test_a_removed_publication_stops_every_build_and_is_made_again(
    warehouse: Warehouse, number: int
) -> None:
    before = rows_by_publication(warehouse)
    name = warehouse.publications()[number].publication_id
    shutil.rmtree(warehouse.folder_of(name))
    assert errors(warehouse) == {Fault.MISSING_PUBLICATION}
    database = warehouse.database.stat().st_ino
    for write in (build_database, publish_samples, compact):
        with pytest.raises(WarehouseError, match=f"{name} was published here and cannot be found"):
            write(warehouse)
    assert warehouse.database.stat().st_ino == database
    assert repair(warehouse).impossible == []
    assert examine_files(warehouse).findings == []
    assert rows_by_publication(warehouse) == before


def test_a_loss_that_nothing_makes_good_stays_an_error_until_it_is_accepted(
    warehouse: Warehouse,
) -> None:
    name = warehouse.publications()[-1].publication_id
    shutil.rmtree(warehouse.folder_of(name))
    shutil.rmtree(warehouse.root / "raw")
    for _ in range(2):
        assert repair(warehouse).impossible != []
        assert Fault.MISSING_PUBLICATION in errors(warehouse)
    with pytest.raises(WarehouseError, match="no such publication on record"):
        accept_loss(warehouse, "00000077", "gone")
    with pytest.raises(WarehouseError, match="say why"):
        accept_loss(warehouse, name, " ")
    accept_loss(warehouse, name, "the disk died")
    assert Fault.MISSING_PUBLICATION not in errors(warehouse)
    last = read_chain(warehouse).links[-1]
    assert (last.event, last.publication_id, last.reason) == (
        Event.LOSS_ACCEPTED,
        name,
        "the disk died",
    )
    with pytest.raises(WarehouseError, match="accepted before"):
        accept_loss(warehouse, name, "again")
    # The database knows more than the files: that is said, and building it anew is possible now.
    assert {f.fault for f in examine_database(warehouse, rebuild=False).findings} == {
        Fault.OLD_DATABASE
    }
    build_database(warehouse)
    assert examine_database(warehouse).findings == []
    # Its number is not given again.
    assert publish_samples(warehouse, "c" * 40).sequence == 6


def test_nothing_is_accepted_of_a_whole_publication(warehouse: Warehouse) -> None:
    name = warehouse.publications()[1].publication_id
    with pytest.raises(WarehouseError, match="nothing of it is lost"):
        accept_loss(warehouse, name, "by mistake")


def test_a_publication_that_comes_back_counts_again(warehouse: Warehouse, tmp_path: Path) -> None:
    before = rows_by_publication(warehouse)
    name = warehouse.publications()[-1].publication_id
    kept = warehouse.folder_of(name).rename(tmp_path / "kept")
    accept_loss(warehouse, name, "believed lost")
    kept.rename(warehouse.folder_of(name))
    with warehouse.locked():
        catch_up(warehouse)
    assert examine_files(warehouse).findings == []
    assert rows_by_publication(warehouse) == before


def number_of_runs(warehouse: Warehouse) -> int:
    counts = rows_by_publication(warehouse)
    return sum(number for (table, _), number in counts.items() if table == "runs")


def test_what_was_given_up_comes_back_by_ingesting_again(warehouse: Warehouse) -> None:
    name = warehouse.publications()[2].publication_id
    runs = sum(
        rows for (table, _), rows in rows_by_publication(warehouse).items() if table == "runs"
    )
    shutil.rmtree(warehouse.folder_of(name))
    accept_loss(warehouse, name, "to see it come back")
    assert ingest_into(warehouse.root, build=False) is not None
    assert number_of_runs(warehouse) == runs


def test_the_loss_of_raw_bytes_is_an_error_of_each_publication_until_accepted(
    warehouse: Warehouse,
) -> None:
    shutil.rmtree(warehouse.root / "raw")
    found = examine_files(Warehouse(warehouse.root)).errors
    names = {record.publication_id for record in warehouse.publications()[1:]}
    assert {f.fault for f in found} == {Fault.MISSING_RAW}
    assert {f.publication_id for f in found} == names
    assert not (warehouse.root / "raw").exists()
    for name in sorted(names):
        accept_loss(Warehouse(warehouse.root), name, "no room for them")
    fresh = examine_files(Warehouse(warehouse.root))
    assert fresh.errors == []
    assert len(fresh.findings) == len(names)
    assert len(warehouse.publications()) == 6


def test_the_copies_of_a_rerun_are_kept_again_where_they_are_gone(warehouse: Warehouse) -> None:
    [file] = warehouse.publications()[-1].tables["rerun_samples"].files
    (warehouse.root / "raw" / file.sha256[:2] / f"{file.sha256}.zst").unlink()
    assert errors(warehouse) == {Fault.MISSING_RAW}
    repair(warehouse)
    assert errors(warehouse) == set()


def test_the_record_and_samples_of_a_rerun_come_back_byte_by_byte(warehouse: Warehouse) -> None:
    folder = warehouse.folder_of(warehouse.publications()[-1].publication_id)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(before) == 2
    for path in folder.iterdir():
        path.unlink()
    assert Fault.NO_RECORD in errors(warehouse)
    assert repair(warehouse).impossible == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "what", ["folder", "file", pytest.param("record", marks=pytest.mark.integration)]
)
def test_a_generation_comes_back_from_raw_bytes(warehouse: Warehouse, what: str) -> None:
    before = rows_by_publication(warehouse)
    compact(warehouse)
    remove_replaced(warehouse, NOW)
    folder = warehouse.folder_of_generation(1)
    if what == "folder":
        shutil.rmtree(folder)
    elif what == "record":
        (folder / "generation.json").unlink()
    else:
        flip_a_byte(folder / "rerun_samples-00000.parquet", random.Random(0))
    assert errors(warehouse) != set()
    with pytest.raises(WarehouseError):
        build_database(warehouse) if what != "file" else remove_replaced_again(warehouse)
    assert repair(warehouse).impossible == []
    assert examine_files(warehouse).findings == []
    assert rows_by_publication(warehouse) == before


def remove_replaced_again(warehouse: Warehouse) -> None:
    # The directories of before are gone; put one there that a damaged generation replaces.
    record = warehouse.publications()[1]
    folder = warehouse.folder_of(record.publication_id)
    folder.mkdir()
    (folder / PUBLICATION_RECORD).write_text(record.model_dump_json())
    try:
        remove_replaced(warehouse, NOW)
    finally:
        shutil.rmtree(folder)


def test_a_publication_that_a_damaged_generation_holds_can_be_given_up(
    warehouse: Warehouse,
) -> None:
    name = warehouse.publications()[-1].publication_id
    compact(warehouse)
    remove_replaced(warehouse, NOW)
    folder = warehouse.folder_of_generation(1)
    flip_a_byte(folder / "rerun_samples-00000.parquet", random.Random(0))
    [file] = read_chain(warehouse).records[name].tables["rerun_samples"].files
    (warehouse.root / "raw" / file.sha256[:2] / f"{file.sha256}.zst").unlink()
    [problem] = repair(warehouse).impossible
    assert name in problem
    accept_loss(Warehouse(warehouse.root), name, "only this one")
    assert repair(warehouse).impossible == []
    assert errors(warehouse) == set()
    assert len(warehouse.publications()) == 5


def test_a_warehouse_of_an_earlier_version_gets_a_chain_with_its_first_write(
    warehouse: Warehouse,
) -> None:
    forget_the_chain(warehouse)
    shutil.rmtree(warehouse.root / "raw" / "no such", ignore_errors=True)
    assert examine_files(warehouse).findings == []
    assert not (warehouse.root / "chain").exists()
    build_database(warehouse)
    chain = read_chain(warehouse)
    assert [link.event for link in chain.links] == [Event.PUBLISHED] * 5
    assert examine_files(warehouse).findings == []


@pytest.mark.parametrize("compacted", [False, True])
def test_the_reruns_of_an_earlier_version_are_copied_when_it_gets_its_chain(
    warehouse: Warehouse, compacted: bool
) -> None:
    [file] = warehouse.publications()[-1].tables["rerun_samples"].files
    (warehouse.root / "raw" / file.sha256[:2] / f"{file.sha256}.zst").unlink()
    if compacted:
        compact(warehouse)
        remove_replaced(warehouse, NOW)
    forget_the_chain(warehouse)
    for path in warehouse.generations_folder.glob("*/generation.json"):
        text = json.loads(path.read_text())
        for record in text["publications"]:
            record.pop("previous", None)
        path.write_text(json.dumps(text))
    build_database(Warehouse(warehouse.root))
    assert examine_files(Warehouse(warehouse.root)).findings == []


def test_the_database_is_a_witness_where_there_is_no_chain(warehouse: Warehouse) -> None:
    name = warehouse.publications()[-1].publication_id
    forget_the_chain(warehouse)
    shutil.rmtree(warehouse.folder_of(name))
    assert errors(warehouse) == {Fault.MISSING_PUBLICATION}
    with pytest.raises(WarehouseError, match=name):
        build_database(warehouse)
    assert Fault.MISSING_PUBLICATION in errors(warehouse)
    assert len(repair(warehouse).impossible) == 1
    accept_loss(warehouse, name, "older than the chain")
    build_database(warehouse)


def test_a_gap_in_the_numbers_is_a_loss_that_can_be_accepted(warehouse: Warehouse) -> None:
    forget_the_chain(warehouse)
    shutil.rmtree(warehouse.folder_of(warehouse.publications()[2].publication_id))
    warehouse.database.unlink()
    assert errors(warehouse) == {Fault.MISSING_PUBLICATION}
    accept_loss(warehouse, "00000002", "long ago")
    assert errors(warehouse) == set()


def cut_the_last_link(folder: Path) -> None:
    lines = (folder / "links").read_text().splitlines(keepends=True)
    (folder / "links").write_text("".join(lines[:-1]))


def cut_two_links(folder: Path) -> None:
    lines = (folder / "links").read_text().splitlines(keepends=True)
    (folder / "links").write_text("".join(lines[:-2]))


def take_a_link_out(folder: Path) -> None:
    lines = (folder / "links").read_text().splitlines(keepends=True)
    (folder / "links").write_text("".join(lines[:1] + lines[2:]))


CHAIN_DAMAGES: list[Callable[[Path], object]] = [
    cut_two_links,
    take_a_link_out,
    lambda folder: flip_a_byte(folder / "links", random.Random(0)),
    lambda folder: flip_a_byte(folder / "head", random.Random(0)),
    lambda folder: (folder / "head").unlink(),
    lambda folder: shutil.rmtree(folder),
]


@pytest.mark.parametrize("change", CHAIN_DAMAGES)
def test_a_damaged_chain_is_an_error_and_written_anew_without_forgetting(
    warehouse: Warehouse, change: Callable[[Path], object]
) -> None:
    name = warehouse.publications()[-1].publication_id
    change(warehouse.root / "chain")
    assert errors(warehouse) == {Fault.DAMAGED_CHAIN}
    with pytest.raises(WarehouseError, match="doctor --repair"):
        build_database(warehouse)
    repair(warehouse)
    assert examine_files(warehouse).findings == []
    assert list(read_chain(warehouse).records) != []
    shutil.rmtree(warehouse.folder_of(name))
    assert errors(warehouse) == {Fault.MISSING_PUBLICATION}


def test_the_last_link_is_in_the_head_as_well(warehouse: Warehouse) -> None:
    before = read_chain(warehouse).links
    cut_the_last_link(warehouse.root / "chain")
    assert read_chain(warehouse).links == before
    assert examine_files(warehouse).findings == []


def test_a_doubled_directory_counts_for_nothing(warehouse: Warehouse) -> None:
    before = rows_by_publication(warehouse)
    folder = warehouse.folder_of(warehouse.publications()[1].publication_id)
    double(folder)
    assert errors(warehouse) == set()
    repair(warehouse)
    assert rows_by_publication(warehouse) == before
    [copy] = [p for p in warehouse.publications_folder.iterdir() if "=0000001" in p.name]
    (copy / PUBLICATION_RECORD).unlink()
    assert errors(warehouse) == {Fault.NO_RECORD}
    repair(warehouse)
    assert not copy.exists()
    assert examine_files(warehouse).findings == []
    assert rows_by_publication(warehouse) == before


def test_a_record_that_was_changed_with_its_file_is_noticed(warehouse: Warehouse) -> None:
    from assets.tables.warehouse import published_file

    record = warehouse.publications()[1]
    folder = warehouse.folder_of(record.publication_id)
    path = folder / "runs-00000.parquet"
    before, was = path.read_bytes(), (folder / PUBLICATION_RECORD).read_bytes()
    shutil.copy(warehouse.folder_of(warehouse.publications()[2].publication_id) / path.name, path)
    text = json.loads(was)
    text["tables"]["runs"]["files"] = [json.loads(published_file(path).model_dump_json())]
    (folder / PUBLICATION_RECORD).write_text(json.dumps(text))
    assert errors(warehouse) == {Fault.NO_RECORD, Fault.DAMAGED_FILE}
    repair(warehouse)
    assert (path.read_bytes(), (folder / PUBLICATION_RECORD).read_bytes()) == (before, was)


@pytest.mark.parametrize("compacted", [False, True])
def test_a_replay_succeeds_where_there_are_reruns(warehouse: Warehouse, compacted: bool) -> None:
    if compacted:
        compact(warehouse)
        remove_replaced(warehouse, NOW)
    assert [outcome.problem for outcome in replay(warehouse)] == [None] * 5
    assert examine_files(warehouse).findings == []


def check_one_repair(root: Path, before: dict[tuple[str, str], int], raw: bool) -> None:
    """After one repair all is well, or what is not is named and a second changes nothing."""
    repairs = repair(Warehouse(root))
    left = examine_files(Warehouse(root)).errors
    if not left:
        assert rows_by_publication(Warehouse(root)) == before
        return
    assert raw, (left, repairs)
    only_raw = {Fault.MISSING_RAW, Fault.MISSING_SNAPSHOT}
    assert repairs.impossible or {finding.fault for finding in left} <= only_raw
    repair(Warehouse(root))
    assert examine_files(Warehouse(root)).errors == left


def damage_and_repair(whole: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = tmp_path / "damaged"
    shutil.copytree(whole, root)
    warehouse = Warehouse(root)
    before = rows_by_publication(warehouse)
    if rng.random() < 0.6:
        compact(warehouse)
        if rng.random() < 0.7:
            remove_replaced(warehouse, NOW)
        publish_samples(warehouse, "e" * 40)
        before = rows_by_publication(warehouse)
    raw = rng.random() < 0.4
    done = damage(warehouse, rng, raw=raw)
    try:
        check_one_repair(root, before, raw)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {done}") from error
    shutil.rmtree(root)


@pytest.mark.parametrize("seed", range(4))
def test_one_repair_is_enough(whole: Path, tmp_path: Path, seed: int) -> None:
    damage_and_repair(whole, tmp_path, seed)


@pytest.mark.integration
def test_one_repair_is_enough_for_much_more_damage(whole: Path, tmp_path: Path) -> None:
    for seed in range(100, 140):
        damage_and_repair(whole, tmp_path / str(seed), seed)


@pytest.mark.integration
def test_a_kill_at_any_place_is_made_good_without_a_person(whole: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tables.killed", str(whole), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    assert len(lines) == 15
    for killed, _, folder in lines:
        assert killed == "True", folder
        warehouse = Warehouse(Path(folder))
        seen = rows_by_publication(warehouse)
        assert set(rows_by_publication(Warehouse(whole)).items()) <= set(seen.items()) or (
            "repair" in folder
        )
        # As the next ingestion does it.
        warehouse.prepare()
        if "repair" in folder:
            repair(warehouse)
        publish_samples(warehouse, "b" * 40)
        repair(warehouse)
        assert examine_files(warehouse).findings == [], folder
        assert not list((warehouse.root / "staging").glob("publication-*"))
        assert read_chain(warehouse).problems == []
