"""Files of other versions of a table: older ones are read with what they lack, newer ones named."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.leaderboards.build import build_database
from assets.manifests import records
from assets.manifests.contract import RELEASE, RELEASE_KEY, TABLE_KEY, VERSION_KEY, Column, Contract
from assets.tables import contracts, repair
from assets.tables.compaction import compact
from assets.tables.contracts import CONTRACTS, STAGED, check_file
from assets.tables.database import published_rows
from assets.tables.errors import OtherVersionError, WarehouseError
from assets.tables.findings import Fault
from assets.tables.integrity import examine_files
from assets.tables.publication import PublicationRequest, publish
from assets.tables.repair import repair_files
from assets.tables.replay import replay
from assets.tables.row_checks import examine_rows
from assets.tables.warehouse import GENESIS, Publication, Warehouse, published_file
from tests.kept_warehouses.make import unpack

ROOT = Path(__file__).resolve().parents[2]
VERSION_1 = ROOT / "tests" / "kept_warehouses" / "version-1.tar.xz"
NOW = CONTRACTS["runs"].version
LINES = Column("log_lines", pa.int64(), since=NOW + 1)
Change = Callable[[str, Contract], None]


@pytest.fixture
def kept(tmp_path: Path) -> Warehouse:
    """The warehouse that version 1 left."""
    return Warehouse(unpack(VERSION_1, tmp_path / "kept"))


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Puts another contract in the place of a table's for the length of a test."""

    def put(table: str, contract: Contract) -> None:
        schema = contract.schema
        placed = pa.schema([*schema, *(pa.field(*c) for c in contracts.PUBLICATION_COLUMNS)])
        placed = placed.with_metadata(schema.metadata)
        monkeypatch.setitem(contracts.CONTRACTS, table, contract)
        monkeypatch.setitem(records.CONTRACTS, table, contract)
        monkeypatch.setitem(contracts.STAGED, table, schema)
        monkeypatch.setitem(records.SCHEMAS, table, schema)
        monkeypatch.setitem(contracts.PUBLISHED, table, placed)

    return put


def with_column(table: str, column: Column) -> Contract:
    """The contract with one more column, in the middle of the others."""
    columns = CONTRACTS[table].columns
    return Contract(table, (*columns[:3], column, *columns[3:]))


def rows_of(warehouse: Warehouse, table: str, columns: str) -> list[tuple[object, ...]]:
    with warehouse.connect() as connection:
        found = published_rows(connection, warehouse, table)
        return found.project(columns).order("all").fetchall()


def publish_run(warehouse: Warehouse, folder: Path, **values: object) -> None:
    """One more row of `runs`, as this version writes it."""
    (folder / "runs").mkdir(parents=True)
    table = pa.Table.from_pylist([values], schema=STAGED["runs"])
    pq.write_table(table, folder / "runs" / "a.parquet")
    assert publish(warehouse, folder, PublicationRequest(kind="ingest")) is not None


def own_file(warehouse: Warehouse, table: str = "runs") -> Path:
    return Path(warehouse.own_files(table)[-1])


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Another file in the place of a published one, and the record to match."""
    before = published_file(path)
    pq.write_table(change(pq.ParquetFile(path).read()), path)
    after = published_file(path)
    [record] = path.parent.glob("*.json")
    text = record.read_text().replace(before.sha256, after.sha256)
    record.write_text(
        text.replace(f'"size_bytes": {before.size_bytes}', f'"size_bytes": {after.size_bytes}')
    )


def says(**statement: str) -> Callable[[pa.Table], pa.Table]:
    keys = {"table": TABLE_KEY, "version": VERSION_KEY, "release": RELEASE_KEY}
    found = {keys[name]: value.encode() for name, value in statement.items()}
    return lambda table: table.replace_schema_metadata(found)


# What is written.


def test_every_file_says_its_table_and_version(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.prepare()
    publish_run(warehouse, tmp_path / "staged", run_digest="a", path="", line=1)
    compact(warehouse, at_least=1)
    for table in CONTRACTS:
        for path in warehouse.files(table):
            said = pq.read_schema(path).metadata
            version = str(CONTRACTS[table].version).encode()
            assert said[TABLE_KEY] == table.encode()
            assert (said[VERSION_KEY], said[RELEASE_KEY]) == (version, RELEASE.encode())


def test_the_release_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == RELEASE


def test_what_a_version_has_never_changes(kept: Warehouse) -> None:
    for path in sorted(kept.folder_of(GENESIS).glob("*.parquet")):
        table = path.name.rpartition("-")[0]
        assert CONTRACTS[table].schema_of(1).equals(pq.read_schema(path)), table


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=list(CONTRACTS))
def test_versions_follow_each_other_and_names_are_used_once(contract: Contract) -> None:
    names = [column.name for column in contract.columns]
    assert len(names) == len(set(names))
    changes = {n for c in contract.columns for n in (c.since, c.until) if n is not None}
    assert changes == set(range(1, contract.version + 1))
    for column in contract.columns:
        pa.scalar(column.default, column.type)
        assert (column.until is None) == (column.last_release is None)


# Older files.


@pytest.mark.parametrize("default", [None, 7])
def test_a_column_that_files_lack_is_explicit_for_old_rows_and_read_for_new_ones(
    kept: Warehouse, change: Change, tmp_path: Path, default: int | None
) -> None:
    before = rows_of(kept, "runs", "run_digest, primary_value, publication_id, published_at")
    change("runs", with_column("runs", replace(LINES, default=default)))
    publish_run(kept, tmp_path / "staged", run_digest="new", log_lines=3, path="", line=1)

    def check() -> None:
        found = rows_of(kept, "runs", "run_digest, log_lines")
        assert dict(found) == {**{str(digest): default for digest, *_ in before}, "new": 3}
        old = rows_of(kept, "runs", "run_digest, primary_value, publication_id, published_at")
        assert [row for row in old if row[0] != "new"] == before

    check()
    assert examine_files(kept).findings == []
    done = compact(kept)
    assert done is not None
    [path] = kept.compacted_files("runs")
    assert check_file("runs", Path(path), placed=True) == NOW + 1
    check()
    assert examine_files(kept).findings == []


def test_an_old_publication_is_made_again_in_the_version_of_today(
    kept: Warehouse, change: Change
) -> None:
    # The rules by which rows are made may be newer too, and digests of inputs say by which.
    not_compared = dict.fromkeys(CONTRACTS, "parser_version")
    not_compared["source_files"] += ", inputs_digest"
    not_compared["implementations"] += ", content_digest"
    not_compared["quarantine"] += ", inputs_digest"
    before = {
        table: rows_of(kept, table, f"* exclude ({columns})")
        for table, columns in not_compared.items()
    }
    column = Column("log_lines", pa.string(), since=NOW + 1, default="unknown")
    change("runs", with_column("runs", column))
    path = Path(kept.own_files("runs")[1])
    path.unlink()
    repairs = repair_files(kept, examine_files(kept).findings)
    assert repairs.impossible == []
    assert check_file("runs", path) == NOW + 1
    assert examine_files(kept).findings == []
    assert examine_rows(kept).findings == []
    for table, rows in before.items():
        columns = not_compared[table] + (", log_lines" if table == "runs" else "")
        assert rows_of(kept, table, f"* exclude ({columns})") == rows, table
    # What was made again is read again; what was not has what its contract says.
    assert {value for _, value in rows_of(kept, "runs", "dataset, log_lines")} == {"unknown", None}


@pytest.mark.parametrize("damaged", ["runs", None])
def test_rules_that_give_other_rows_elsewhere_change_no_table_that_is_whole(
    kept: Warehouse, monkeypatch: pytest.MonkeyPatch, damaged: str | None
) -> None:
    replayed = repair._replay

    def by_newer_rules(
        warehouse: Warehouse, before: Warehouse, record: Publication, to: Path
    ) -> None:
        replayed(warehouse, before, record, to)
        row = {"operation_digest": "new", "name": "new", "reference_digest": "new"}
        table = pa.Table.from_pylist([row], schema=STAGED["operations"])
        (to / "operations").mkdir(exist_ok=True)
        pq.write_table(table, to / "operations" / "newer.parquet")

    monkeypatch.setattr(repair, "_replay", by_newer_rules)
    record = next(record for record in kept.uncompacted() if record.kind == "ingest")
    folder = kept.folder_of(record.publication_id)
    before = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    if damaged == "runs":
        (folder / "runs-00000.parquet").unlink()
        assert repair_files(kept, examine_files(kept).findings).impossible == []
        assert kept.record_of(record.publication_id).tables["runs"].rows == 2
        assert examine_files(kept).findings == []
    else:
        problems = [outcome.problem or "" for outcome in replay(kept)]
        assert any("operations 1 rows, not 0" in problem for problem in problems)
    after = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    before.pop("runs-00000.parquet")
    assert {name: after[name] for name in before} == before


def test_a_lost_record_is_made_again_from_files_of_an_older_version(
    kept: Warehouse, change: Change
) -> None:
    change("runs", with_column("runs", LINES))
    record = kept.publications()[-2]
    (kept.folder_of(record.publication_id) / "publication.json").unlink()
    repairs = repair_files(kept, examine_files(kept).findings)
    assert repairs.impossible == []
    assert kept.publications()[-2].tables == record.tables


def test_no_statement_reads_published_files_past_their_versions() -> None:
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        read = set(re.findall(r"(?:read_parquet|parquet_scan)\(\s*([^,\s)]+)", path.read_text()))
        assert read <= {"$staged"}, f"{path}: reads {read}; use the view published_<table>"


# Files that are not what they say.


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.string()])
def test_a_column_of_another_type_is_refused_and_never_widened(
    kept: Warehouse, kind: pa.DataType
) -> None:
    path = own_file(kept)

    def changed(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("primary_value")
        return table.set_column(place, "primary_value", table["primary_value"].cast(kind))

    rewrite(path, changed)
    database = kept.database.read_bytes()
    for reading in (build_database, compact, lambda w: rows_of(w, "runs", "run_digest")):
        with pytest.raises(WarehouseError, match=r"columns primary_value are not") as raised:
            reading(kept)
        assert raised.value.message.startswith(str(path))
    assert kept.database.read_bytes() == database
    assert {finding.fault for finding in examine_files(kept).findings} == {Fault.OTHER_SCHEMA}


@pytest.mark.parametrize(
    "statement",
    [
        {"version": "0"},
        {"version": "-1"},
        {"version": "one"},
        {"version": "0" * 5000 + "1"},
        {"version": ""},
        {"table": "measurements", "version": "1"},
    ],
)
def test_a_file_that_lies_about_itself_is_refused(kept: Warehouse, statement: dict) -> None:
    rewrite(own_file(kept), says(**statement))
    with pytest.raises(WarehouseError, match="runs"):
        rows_of(kept, "runs", "run_digest")
    assert {finding.fault for finding in examine_files(kept).findings} == {Fault.OTHER_SCHEMA}


def test_a_new_column_in_a_file_that_says_it_is_old_is_refused(
    kept: Warehouse, change: Change
) -> None:
    change("runs", with_column("runs", LINES))
    nothing = pa.nulls(pq.read_metadata(own_file(kept)).num_rows, pa.int64())
    rewrite(own_file(kept), lambda table: table.append_column("log_lines", nothing))
    with pytest.raises(WarehouseError, match="columns log_lines are not those of version 1"):
        rows_of(kept, "runs", "run_digest")


def test_a_staged_part_of_an_older_version_is_not_published(
    kept: Warehouse, change: Change, tmp_path: Path
) -> None:
    folder = tmp_path / "staged" / "runs"
    folder.mkdir(parents=True)
    old = pa.Table.from_pylist([{"run_digest": "new"}], schema=STAGED["runs"])
    pq.write_table(old, folder / "a.parquet")
    change("runs", with_column("runs", LINES))
    with pytest.raises(WarehouseError, match=f"version {NOW} of table runs, not of {NOW + 1}"):
        publish(kept, folder.parent, PublicationRequest(kind="ingest"))


# What only another version can read.


def newer_file(kept: Warehouse) -> Path:
    rewrite(own_file(kept), says(table="runs", version="3", release="0.9.1"))
    return own_file(kept)


def newer_record(kept: Warehouse) -> Path:
    rewrite(own_file(kept), says(table="runs", version="1", release="0.9.1"))
    path = own_file(kept).parent / "publication.json"
    path.write_text(path.read_text().replace('"kind"', '"signed_by": "a key",\n  "kind"', 1))
    return path


def newer_table(kept: Warehouse) -> Path:
    rewrite(own_file(kept), says(table="runs", version="1", release="0.9.1"))
    path = own_file(kept).parent / "publication.json"
    path.write_text(path.read_text().replace('"runs": {', '"walks": {', 1))
    return path


def newer_generation(kept: Warehouse) -> Path:
    files = [Path(kept.compacted_files(table)[0]) for table in ("artifacts", "runs")]
    for file in files:
        rewrite(file, says(release="0.9.1"))
    path = files[0].parent / "generation.json"
    path.write_text(path.read_text().replace('"number"', '"walks": 1,\n  "number"', 1))
    return path


@pytest.mark.parametrize("make", [newer_file, newer_record, newer_table, newer_generation])
def test_what_a_newer_version_wrote_is_named_with_that_version_and_left_alone(
    kept: Warehouse, make: Callable[[Warehouse], Path], tmp_path: Path
) -> None:
    path = make(kept)
    places = (kept.publications_folder, kept.generations_folder)
    files = [kept.database, *(file for place in places for file in place.rglob("*.*"))]
    before = {file: file.read_bytes() for file in files}

    def extend(warehouse: Warehouse) -> None:
        publish_run(warehouse, tmp_path / "staged", run_digest="new", path="", line=1)

    for using in (build_database, compact, extend):
        with pytest.raises(OtherVersionError, match=r"use kernelindex 0\.9\.1 or newer") as raised:
            using(kept)
        assert str(path.parent) in raised.value.message
        assert "\n" not in raised.value.message
    found = examine_files(kept).findings
    assert {finding.fault for finding in found} == {Fault.OTHER_VERSION}
    assert repair_files(kept, found).impossible
    assert {file: file.read_bytes() for file in before} == before


def test_a_link_that_a_newer_version_wrote_is_no_damage(kept: Warehouse, tmp_path: Path) -> None:
    publish_run(kept, tmp_path / "staged", run_digest="new", path="", line=1)
    links, head = (kept.root / "chain" / name for name in ("links", "head"))
    newest = links.read_text().splitlines()[-1]
    link = json.loads(newest.partition(" ")[2]) | {"event": "signed", "by": "a key"}
    text = json.dumps(link)
    line = f"{hashlib.sha256(text.encode()).hexdigest()} {text}"
    for path in (links, head):
        path.write_text(path.read_text().replace(newest, line))
    before = {file: file.read_bytes() for file in kept.root.rglob("*") if file.is_file()}
    with pytest.raises(OtherVersionError, match="use a newer one"):
        build_database(kept)
    found = examine_files(kept).findings
    assert [finding.fault for finding in found] == [Fault.OTHER_VERSION]
    assert repair_files(kept, found).impossible
    assert {file: file.read_bytes() for file in before} == before


def test_a_removed_column_names_the_last_version_that_reads_it(
    kept: Warehouse, change: Change
) -> None:
    columns = tuple(
        replace(column, until=2, last_release="0.1.0") if column.name == "raw_status" else column
        for column in CONTRACTS["runs"].columns
    )
    change("runs", Contract("runs", columns))
    assert "raw_status" not in STAGED["runs"].names
    with pytest.raises(OtherVersionError, match=r"column raw_status.*kernelindex 0\.1\.0 is"):
        rows_of(kept, "runs", "run_digest")
    assert Fault.OTHER_VERSION in {finding.fault for finding in examine_files(kept).findings}
