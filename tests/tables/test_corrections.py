"""Corrections are appended, checked and never change the evidence."""

import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.leaderboards.build import build_database
from assets.tables.corrections import (
    Action,
    Correction,
    LocatedCorrection,
    parse_corrections,
    publish_corrections,
    to_jsonl,
)
from assets.tables.errors import WarehouseError
from assets.tables.integrity import examine_files
from assets.tables.repair import repair_files
from assets.tables.warehouse import Warehouse

NOBODY = "sha256:" + "0" * 64
WHO = {"author": "A. Reader", "reason": "throttled", "evidence_url": "https://example.org/log"}


@pytest.fixture
def warehouse(warehouse_copy: Path) -> Warehouse:
    return Warehouse(warehouse_copy)


def ask(warehouse: Warehouse, sql: str) -> list[tuple]:
    with duckdb.connect(str(warehouse.database), read_only=True) as connection:
        return connection.sql(sql).fetchall()


def leaders(warehouse: Warehouse) -> list[str]:
    found = ask(
        warehouse,
        "select run_digest from ranked_runs "
        "order by group_size desc, comparison_key, display_order",
    )
    return [digest for (digest,) in found[:2]]


def located(*corrections: dict) -> list[LocatedCorrection]:
    text = "\n".join(json.dumps({**WHO, **correction}) for correction in corrections)
    return parse_corrections(text.encode(), "corrections.jsonl")


def publish(warehouse: Warehouse, *corrections: dict):
    return publish_corrections(warehouse, located(*corrections), "corrections.jsonl")


def test_a_retracted_run_loses_its_rank_and_keeps_its_evidence(warehouse: Warehouse) -> None:
    leader, second = leaders(warehouse)
    columns = "* exclude (eligible, excluded_because)"
    stated = f"select {columns} from runs where run_digest = '{leader}'"
    [evidence] = ask(warehouse, stated)
    record = publish(warehouse, {"action": "retract", "target": leader})
    assert record is not None
    assert record.kind == "correction"
    build_database(warehouse)
    assert ask(warehouse, stated) == [evidence]
    assert ask(warehouse, f"from ranked_runs where run_digest = '{leader}'") == []
    [(rank,)] = ask(warehouse, f"select rank from ranked_runs where run_digest = '{second}'")
    assert rank == 1
    assert publish(warehouse, {"action": "retract", "target": leader}) is None


def test_an_attestation_changes_neither_rank_nor_evidence_level(warehouse: Warehouse) -> None:
    leader, _ = leaders(warehouse)
    query = "select run_digest, evidence_level, rank from runs join ranked_runs using (run_digest)"
    before = sorted(ask(warehouse, query))
    publish(warehouse, {"action": "attest", "target": leader})
    build_database(warehouse)
    assert sorted(ask(warehouse, query)) == before
    assert ask(warehouse, "select action, author, effective_at is not null from corrections") == [
        ("attest", "A. Reader", True)
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Invalid JSON"),
        ('{"action": "remove"}', "action: Input should be 'retract', 'supersede' or 'attest'"),
        ('{"action": "retract", "target": "abc"}', "target: String should match pattern"),
        (json.dumps({"action": "retract", "target": NOBODY}), "author: Field required"),
        (
            json.dumps({**WHO, "action": "retract", "target": NOBODY, "evidence_url": "a note"}),
            "evidence_url: String should match pattern",
        ),
        (
            json.dumps({**WHO, "action": "supersede", "target": NOBODY}),
            "a supersession needs `replacement`",
        ),
        (
            json.dumps({**WHO, "action": "retract", "target": NOBODY, "note": "x"}),
            "note: Extra inputs are not permitted",
        ),
        (
            json.dumps(
                {**WHO, "action": "retract", "target": NOBODY, "effective_at": "2026-01-01T00:00"}
            ),
            "effective_at: Input should have timezone info",
        ),
    ],
)
def test_a_bad_line_is_named_with_its_field(line: str, message: str) -> None:
    good = json.dumps({**WHO, "action": "retract", "target": NOBODY})
    with pytest.raises(WarehouseError) as raised:
        parse_corrections(f"{good}\r\n\n{line}\n".encode(), "c.jsonl")
    assert raised.value.message.startswith("c.jsonl:3: ")
    assert message in raised.value.message


def test_digests_that_are_not_published_and_circles_are_refused(warehouse: Warehouse) -> None:
    first, second = leaders(warehouse)
    [(implementation,)] = ask(warehouse, "select implementation_digest from runs limit 1")
    published = len(warehouse.publications())
    supersede = {"action": "supersede"}
    for corrections, message in (
        ([{"action": "retract", "target": NOBODY}], ":1: target: no published run"),
        ([{**supersede, "target": first, "replacement": NOBODY}], "is not published"),
        ([{**supersede, "target": first, "replacement": implementation}], "is of kind"),
        (
            [
                {**supersede, "target": first, "replacement": second},
                {**supersede, "target": second, "replacement": first},
            ],
            ":2: replacement: supersessions would go in a circle",
        ),
        (
            [{"action": "attest", "target": first, "target_kind": "implementation"}],
            "is of kind run, not implementation",
        ),
    ):
        with pytest.raises(WarehouseError) as raised:
            publish(warehouse, *corrections)
        assert message in raised.value.message
    assert len(warehouse.publications()) == published


def test_a_circle_over_two_files_is_refused(warehouse: Warehouse) -> None:
    first, second = leaders(warehouse)
    publish(warehouse, {"action": "supersede", "target": first, "replacement": second})
    with pytest.raises(WarehouseError, match="circle"):
        publish(warehouse, {"action": "supersede", "target": second, "replacement": first})


def test_a_damaged_publication_of_corrections_is_made_again(warehouse: Warehouse) -> None:
    leader, _ = leaders(warehouse)
    record = publish(warehouse, {"action": "retract", "target": leader})
    assert record is not None
    path = Path(warehouse.files("corrections")[-1])
    intact = path.read_bytes()
    path.write_bytes(b"damaged")
    assert repair_files(warehouse, examine_files(warehouse).findings).impossible == []
    assert path.read_bytes() == intact


TEXT = st.text(min_size=1).filter(lambda text: text.strip() == text and text.isprintable())


@given(author=TEXT, reason=TEXT)
def test_what_is_written_is_read_again(author: str, reason: str) -> None:
    correction = Correction(
        action=Action.ATTEST,
        target=NOBODY,
        author=author,
        reason=reason,
        evidence_url="https://example.org/a",
    )
    [read] = parse_corrections(to_jsonl([correction]), "c.jsonl")
    assert read.correction == correction
