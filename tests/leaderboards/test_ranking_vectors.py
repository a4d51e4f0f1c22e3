"""The public index's own test vectors, run through the SQL files."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.leaderboards.derive import derive

Case = dict[str, Any]


@pytest.fixture(scope="module")
def vectors(golden: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((golden / "vectors.json").read_text())
    return loaded


def _digests(ids: list[str], ascii_order: str) -> dict[str, str]:
    # Digests are lower-case hexadecimal, where a dictionary's order and the bytes' agree. The
    # vectors' ids are anything, so they are numbered in the dictionary's order.
    def dictionary(text: str) -> tuple[list[int], list[bool]]:
        return [ascii_order.index(c.lower()) for c in text], [c.isupper() for c in text]

    ordered = sorted(set(ids), key=dictionary)
    return {name: f"sha256:{number:064x}" for number, name in enumerate(ordered)}


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def _ties(a: Case, b: Case, profile: str) -> bool:
    if a["value"] == b["value"]:
        return True
    if profile == "source_native" or a["interval"] is None or b["interval"] is None:
        return False
    return a["interval"][0] <= b["interval"][1] and b["interval"][0] <= a["interval"][1]


def _ranks(inputs: list[Case], profile: str) -> dict[str, int]:
    """The rule word by word, for values in the order given where they are equal."""
    chains: list[list[Case]] = []
    for item in sorted(inputs, key=lambda item: item["value"]):
        if chains and all(_ties(item, member, profile) for member in chains[-1]):
            chains[-1].append(item)
        else:
            chains.append([item])
    return {item["id"]: rank for rank, chain in enumerate(chains, start=1) for item in chain}


def _ranked(cases: list[Case], ascii_order: str) -> dict[str, list[list[Any]]]:
    """Ranks every vector at once: a vector is a comparison group."""
    origins = [
        (source_native, evidence)
        for source_native in (False, True)
        for evidence in ("reported", "reproducible", "verified", "replicated")
    ]
    runs: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for number, case in enumerate(cases):
        group = f"{case['name']} {case['profile']}"
        digests = _digests([item["id"] for item in case["inputs"]], ascii_order)
        for item in case["inputs"]:
            digest = f"{digests[item['id']]} {group}"
            names[digest] = item["id"]
            low, high = item["interval"] or (None, None)
            runs.append(
                {
                    "run_digest": digest,
                    "condition_number": number,
                    "origin_number": origins.index(
                        (case["profile"] == "source_native", item["evidence"])
                    ),
                    "primary_value": float(item["value"]),
                    "uncertainty_low_ns": low,
                    "uncertainty_high_ns": high,
                    "observed_at": _instant(item["observedAt"]),
                    "eligible": True,
                }
            )
    tables = {
        "run_facts": runs,
        "run_conditions": [
            {
                "condition_number": number,
                "comparison_number": number,
                "comparison_key": f"{case['name']} {case['profile']}",
            }
            for number, case in enumerate(cases)
        ],
        "run_origins": [
            {"origin_number": number, "source_native": source_native, "evidence_level": evidence}
            for number, (source_native, evidence) in enumerate(origins)
        ],
    }
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.from_arrow(pa.Table.from_pylist(rows)).create(name)
    derive(connection, ["ranked_runs"], given=tables)
    found: dict[str, list[list[Any]]] = {f"{case['name']} {case['profile']}": [] for case in cases}
    ranked = connection.sql(
        "select comparison_key, run_digest, rank, tied_with_previous from ranked_runs"
        " order by comparison_key, display_order"
    )
    for group, digest, rank, tied in ranked.fetchall():
        found[group].append([names[digest], rank, tied])
    return found


def test_ranks_equal_the_vectors_wherever_those_do_not_depend_on_row_order(vectors):
    cases = vectors["ranking"]["vectors"]
    ascii_order = vectors["workloadEntryKey"]["asciiOrder"]
    found = _ranked(cases, ascii_order)
    different = []
    for case in cases:
        inputs, profile, expected = case["inputs"], case["profile"], case["expected"]
        assert _ranks(inputs, profile) == {name: rank for name, rank, _ in expected}
        digests = _digests([item["id"] for item in inputs], ascii_order)
        by_digest = sorted(inputs, key=lambda item: digests[item["id"]])
        ours = found[f"{case['name']} {profile}"]
        assert {name: rank for name, rank, _ in ours} == _ranks(by_digest, profile)
        if ours != expected:
            different.append(case["name"])
            assert _ranks(by_digest, profile) != _ranks(inputs, profile)
    # Equal values are taken by digest; there the public index keeps the order of its rows, and
    # with intervals its ranks depend on it.
    assert "equal-values-split-by-interval (input order X,B,A)" in different
    assert (len(different), len(cases)) == (7, 104)


INTERVALS = st.one_of(
    st.none(), st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda ends: sorted(ends))
)


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 8), INTERVALS), min_size=1, max_size=9),
        min_size=1,
        max_size=25,
    ),
    st.randoms(use_true_random=False),
)
def test_ranks_follow_the_rule_and_not_the_order_of_rows(groups, random):
    cases = [
        {
            "name": f"group {number}",
            "profile": "strict_exact",
            "inputs": [
                {
                    "id": str(place),
                    "value": value,
                    "interval": interval,
                    "evidence": "reported",
                    "observedAt": "2026-02-01T00:00:00Z",
                }
                for place, (value, interval) in enumerate(group)
            ],
        }
        for number, group in enumerate(groups)
    ]
    expected = {case["name"]: _ranks(case["inputs"], "strict_exact") for case in cases}
    for case in cases:
        random.shuffle(case["inputs"])
    found = _ranked(cases, "0123456789")
    for case in cases:
        ours = found[f"{case['name']} strict_exact"]
        assert {name: rank for name, rank, _ in ours} == expected[case["name"]]


def test_eligibility_equals_the_vectors(vectors, index):
    # Whatever is unpublished is in no table, so those vectors have nothing to say here.
    published = [case for case in vectors["eligibility"]["vectors"] if case[1]]
    for number, (status, _, retracted, superseded, value, _) in enumerate(published):
        digest = f"run {number:02d}"
        index.run(digest, value, status=status)
        if retracted:
            index.correction("retract", digest)
        if superseded:
            index.correction("supersede", digest)
    found = index.table("run_eligibility", "run_digest", "reasons", "eligible")
    assert found == [
        (f"run {number:02d}", case[5], not case[5]) for number, case in enumerate(published)
    ]
    assert len(published) == 24
