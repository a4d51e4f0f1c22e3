"""Record events, corrections and what they change."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.leaderboards.index import Index, at


def events(index: Index) -> list[tuple[str, int, str | None, str]]:
    return [
        (f"{when:%m-%d}", value, previous, cause)
        for when, value, previous, cause in index.table(
            "record_events", "at", "primary_value", "previous_run_digest", "cause"
        )
    ]


def test_an_event_at_each_strictly_lower_value_names_the_holder_before_it(index):
    index.run("a", 100, "2026-02-01")
    index.run("b", 100, "2026-02-02")
    index.run("c", 120, "2026-02-03")
    index.run("d", 80, "2026-02-04")
    assert events(index) == [("02-01", 100, None, "new_run"), ("02-04", 80, "a", "new_run")]
    [record] = index.table("records", "run_digest", "primary_value", "record_changes")
    assert record == ("d", 80, 2)


def test_at_one_instant_the_smaller_digest_comes_first(index):
    index.run("b", 90)
    index.run("a", 100)
    assert events(index) == [("02-01", 90, "a", "new_run"), ("02-01", 100, None, "new_run")]


def test_a_late_import_of_an_earlier_faster_run_moves_the_record(index):
    index.revision("r1", "2026-03-01")
    index.revision("r2", "2026-04-01")
    index.file("r1", "a", "1")
    index.file("r2", "a", "2")
    index.run("known", 100, "2026-02-02", revision="r1")
    assert events(index) == [("02-02", 100, None, "new_run")]
    index.run("late", 90, "2026-02-01", revision="r2")
    assert events(index) == [("02-01", 90, None, "late_import")]


def test_without_revision_times_the_publication_tells_what_came_late(index):
    index.run("known", 100, "2026-02-02", published_at=at("2026-03-01"))
    index.run("late", 110, "2026-02-01", published_at=at("2026-04-01"))
    assert events(index) == [
        ("02-01", 110, None, "late_import"),
        ("02-02", 100, "late", "new_run"),
    ]


def test_retracting_the_leader_gives_the_record_to_the_next_and_says_why(index):
    index.run("leader", 80, "2026-02-01")
    index.run("next", 90, "2026-02-02")
    index.correction("retract", "leader")
    assert events(index) == [("02-02", 90, None, "retraction")]
    assert index.table("ranked_runs", "run_digest", "rank", "group_size") == [("next", 1, 1)]


def test_retracting_a_run_that_never_led_adds_no_event(index):
    index.run("leader", 80, "2026-02-01")
    index.run("other", 90, "2026-02-02")
    before = events(index)
    index.correction("retract", "other")
    assert events(index) == before


def test_superseding_an_implementation_takes_all_its_runs_out(index):
    index.run("old", 80, "2026-02-01", implementation_digest="v1")
    index.run("new", 90, "2026-02-02", implementation_digest="v2")
    index.correction("supersede", "v1", kind="implementation", replacement_digest="v2")
    assert events(index) == [("02-02", 90, None, "supersession")]
    assert index.table("run_eligibility", "run_digest", "reasons") == [
        ("new", []),
        ("old", ["SUPERSEDED"]),
    ]


def test_an_attestation_changes_neither_rank_nor_evidence(index):
    index.run("run", 80)
    index.correction("attest", "run")
    index.correction("attest", "run")
    assert index.table("runs", "evidence_level") == [("reported",)]
    assert index.table("ranked_runs", "run_digest", "rank") == [("run", 1)]
    [(corrections, level)] = index.table("run_dossiers", "corrections", "evidence_level")
    assert [item["action"] for item in corrections] == ["attest", "attest"]
    assert level == "reported"


def test_a_correction_that_is_published_twice_counts_once(index):
    index.run("run", 80)
    index.correction("retract", "run")
    index.rows["corrections"].append(dict(index.rows["corrections"][0], line=2))
    assert len(index.table("corrections", "correction_id")) == 1


def test_every_excluded_run_is_listed_with_each_reason(index):
    index.run("failed", None)
    index.run("withdrawn", 80)
    index.correction("retract", "withdrawn")
    assert index.table("excluded_runs", "run_digest", "reason") == [
        ("failed", "MISSING_PRIMARY_METRIC"),
        ("failed", "STATUS_RUNTIME_ERROR"),
        ("withdrawn", "RETRACTED"),
    ]


RUNS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.booleans(), st.sampled_from("xy")),
    max_size=12,
)


@settings(max_examples=12)
@given(RUNS, st.randoms(use_true_random=False))
def test_events_follow_from_the_eligible_runs_whatever_the_order_of_rows(drawn, random):
    runs = [
        (f"run {number:02d}", day, value, retracted, group)
        for number, (day, value, retracted, group) in enumerate(drawn)
    ]
    expected = []
    for group in "xy":
        holder, best = None, None
        for digest, day, value, retracted, of in sorted(runs, key=lambda run: (run[1], run[0])):
            if of == group and not retracted and (best is None or value < best):
                expected.append((group, digest, holder, at(f"2026-02-0{day}")))
                holder, best = digest, value
    index = Index()
    random.shuffle(runs)
    for digest, day, value, retracted, group in runs:
        index.run(digest, value, f"2026-02-0{day}", comparison_key=group)
        if retracted:
            index.correction("retract", digest)
    found = index.table(
        "record_events", "comparison_key", "run_digest", "previous_run_digest", "at"
    )
    assert found == sorted(expected)


@pytest.mark.parametrize("table", ["ranked_runs", "record_events", "ranked_implementations"])
def test_nothing_is_ranked_across_comparison_groups(index, table):
    index.run("slow", 1000, comparison_key="one", workload_digest="w1")
    index.run("fast", 10, comparison_key="other", workload_digest="w2")
    assert len(index.table(table, "comparison_key", where="comparison_key = 'one'")) == 1
    if table != "record_events":
        assert index.table(table, "rank") == [(1,), (1,)]
