"""ranking-v2, caveats and the leaderboards, each on the few rows that it is about."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.leaderboards.index import GPU, Index


def ranked(index: Index) -> list[tuple[str, int, int, int, int, int]]:
    return index.table(
        "ranked_implementations",
        "implementation_digest",
        "rank",
        "median_ns",
        "minimum_ns",
        "maximum_ns",
        "repeats",
    )


def repeats(index: Index, implementation: str, *latencies: int | None, **values: object) -> None:
    for latency in latencies:
        index.run(
            f"{implementation} {len(index.rows['runs'])}",
            latency,
            implementation_digest=implementation,
            **values,
        )


def test_an_implementation_ranks_once_by_the_median_of_its_repeats(index):
    repeats(index, "a", 100, 300, 110)
    repeats(index, "b", 90, 95)
    assert ranked(index) == [("a", 2, 110, 100, 300, 3), ("b", 1, 93, 90, 95, 2)]


def test_overlapping_repeat_ranges_tie_and_a_chain_does_not(index):
    repeats(index, "a", 100, 104)
    repeats(index, "b", 103, 108)
    repeats(index, "c", 107, 112)
    assert [row[:2] for row in ranked(index)] == [("a", 1), ("b", 1), ("c", 2)]


@pytest.mark.parametrize("column", ["input_fingerprint", "reference_digest"])
def test_other_inputs_or_another_reference_are_another_group(index, column):
    repeats(index, "a", 100, **{column: "one"})
    repeats(index, "b", 90, **{column: "other"})
    assert [row[:2] for row in ranked(index)] == [("a", 1), ("b", 1)]
    assert index.table("ranked_runs", "rank") == [(1,), (2,)]


def test_failed_repeats_are_counted_and_change_nothing_else(index):
    repeats(index, "a", 100, None, None)
    assert ranked(index) == [("a", 1, 100, 100, 100, 1)]
    assert index.table("ranked_implementations", "excluded") == [(2,)]


RANGES = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=3), min_size=1, max_size=9)


def _median(values: list[int]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


@settings(max_examples=15)
@given(RANGES, st.randoms(use_true_random=False))
def test_ranks_follow_the_rule_of_overlapping_ranges(drawn, random):
    named = [(f"i{number}", values) for number, values in enumerate(drawn)]
    chains: list[list[list[int]]] = []
    expected = {}
    for name, values in sorted(
        named, key=lambda item: (_median(item[1]), min(item[1]), max(item[1]), item[0])
    ):
        ties = chains and all(
            min(values) <= max(other) and min(other) <= max(values) for other in chains[-1]
        )
        chains = [*chains[:-1], [*chains[-1], values]] if ties else [*chains, [values]]
        expected[name] = len(chains)
    index = Index()
    random.shuffle(named)
    for name, values in named:
        repeats(index, name, *values)
    assert {row[0]: row[1] for row in ranked(index)} == expected


def caveats(index: Index) -> list[tuple[str, str]]:
    return index.table("caveats", "code", "run_digest")


def test_inputs_that_differ_under_one_workload_are_a_caveat(index):
    index.add("workloads", external_id="1", input_fingerprint="one")
    index.add("workloads", external_id="2", input_fingerprint="other")
    index.run("run", 10)
    assert caveats(index) == [("MIXED_INPUTS", "run")]


def test_both_timers_in_one_group_are_a_caveat_of_every_run(index):
    index.run("before", 10, "2026-02-23", implementation_digest="a")
    index.run("after", 10, "2026-02-24", implementation_digest="b")
    index.run("elsewhere", 10, "2026-02-24", workload_digest="other")
    assert caveats(index) == [("TIMER_ERA", "after"), ("TIMER_ERA", "before")]


def test_a_reference_far_from_the_others_is_a_caveat_of_that_run_only(index):
    for number, milliseconds in enumerate((1.0, 1.1, 0.9, 2.0)):
        implementation = f"i{number}"
        index.run(
            f"run {milliseconds}",
            10,
            implementation_digest=implementation,
            reference_latency_ms=milliseconds,
        )
    assert caveats(index) == [("REFERENCE_DISAGREES", "run 2.0")]
    [(value, threshold)] = index.table("caveats", "value", "threshold")
    assert (round(value, 3), threshold) == (1.905, 1.5)


def test_repeats_loose_errors_and_skips_are_caveats(index):
    repeats(index, "a", 100, 150)
    index.run("loose", 90, implementation_digest="b", max_relative_error=0.02)
    index.run("tight", 90, implementation_digest="c", max_relative_error=0.01)
    index.run("skipped", None, implementation_digest="d", not_measured=True)
    assert caveats(index) == [
        ("LOOSE_TOLERANCE", "loose"),
        ("NOT_MEASURED", "skipped"),
        ("REPEATED_MEASUREMENT", "a 0"),
        ("REPEATED_MEASUREMENT", "a 1"),
    ]


def test_a_source_of_another_operation_is_a_caveat(index):
    index.add("implementations", implementation_digest="implementation", operation_digest="other")
    index.run("run", 10)
    assert caveats(index) == [("SOURCE_OF_OTHER_DEFINITION", "run")]


def test_an_unknown_architecture_is_a_caveat(index):
    index.add("environments", gpu_architecture="unknown")
    index.run("run", 10_000)
    assert caveats(index) == [("UNKNOWN_ARCHITECTURE", "run")]


def matrix(index: Index, family: str) -> None:
    # 8192 x 8192 bf16 in, the same out: 2 x 134,217,728 bytes, of which 50 MiB fit the cache of an
    # H200; the rest takes (268,435,456 - 52,428,800) / 4800 = 45,001.4 ns at 4.8 TB/s.
    index.add("environments")
    index.add(
        "operations",
        family=family,
        constant_axes_json='{"n":8192}',
        canonical_json='{"spec":{"outputs":[{"tensor":{"dtype":"bf16","shape":["m","n"]}}]}}',
    )
    index.add(
        "workloads",
        axes_json='{"m":8192}',
        canonical_json='{"spec":{"tensors":{"x":{"dtype":"bf16","shape":[8192,8192]}}}}',
    )


def test_a_latency_below_the_floor_of_the_memory_is_a_caveat(index):
    matrix(index, "gemm")
    index.run("impossible", 42_816)
    index.run("possible", 42_817, implementation_digest="other")
    assert caveats(index) == [("IMPOSSIBLE_SPEED", "impossible")]
    sizes = index.table("workload_sizes", "input_bytes", "output_bytes", "moved_bytes")
    assert sizes == [(134_217_728, 134_217_728, 268_435_456)]


def test_no_gpu_takes_less_than_it_needs_to_load_an_input(index):
    """Whatever was measured, and on a device whose bandwidth nobody states."""
    index.add("environments", gpu_product="NVIDIA Tomorrow")
    index.run("of a nanosecond", 1)
    index.run("impossible", 99, implementation_digest="other")
    index.run("possible", 100, implementation_digest="third")
    found = index.table("caveats", "code", "run_digest", "value", "threshold")
    assert found == [
        ("IMPOSSIBLE_SPEED", "impossible", 99.0, 100.0),
        ("IMPOSSIBLE_SPEED", "of a nanosecond", 1.0, 100.0),
    ]


@pytest.mark.parametrize("column", ["max_absolute_error", "max_relative_error"])
@pytest.mark.parametrize("error", [None, math.nan, math.inf])
def test_a_run_that_passed_without_a_finite_error_is_a_caveat(index, column, error):
    index.run("passed", 1000, **{column: error})
    index.run("failed", None, implementation_digest="other", **{column: error})
    assert ("ERROR_NOT_FINITE", "passed") in caveats(index)
    assert "failed" not in {run for _, run in caveats(index)}


def test_a_pass_and_a_failure_of_one_implementation_are_a_caveat_of_both(index):
    repeats(index, "a", 100, None, None)
    index.run("skipped", None, implementation_digest="a", not_measured=True)
    index.run("elsewhere", None, implementation_digest="a", workload_digest="other")
    repeats(index, "b", None, None)
    index.run("passed before it was skipped", 100, implementation_digest="c")
    index.run("then skipped", None, implementation_digest="c", not_measured=True)
    mixed = index.table("caveats", "run_digest", "value", where="code = 'MIXED_OUTCOMES'")
    assert mixed == [("a 0", 2.0), ("a 1", 2.0), ("a 2", 2.0)]


@pytest.mark.parametrize("latency", [0, -1, -(2**63)])
def test_a_latency_that_nothing_can_take_leads_nothing(index, latency):
    authors(index)
    before = {name: sorted(index.derive(name).table(name).fetchall()) for name in STANDINGS}
    index.run("of no time", latency, workload_digest="w1", implementation_digest="ann",
              author_directory="ann", observed="2026-01-01", comparison_key="w1")  # fmt: skip
    for name in STANDINGS:
        assert sorted(index.derive(name).table(name).fetchall()) == before[name], name
    assert index.table(
        "excluded_runs", "reason", "explanation", where="run_digest = 'of no time'"
    ) == [("LATENCY_NOT_POSITIVE", "its latency is 0 ns or less, which nothing can take")]


STANDINGS = ("ranked_runs", "record_events", "records", "rank_facts", "fast_p_curves")


@pytest.mark.parametrize(
    ("reference_ms", "stated", "reported"),
    [(2.0, 4.0, 4.0), (None, 4.0, 4.0), (0.0, 4.0, None), (-1.0, 4.0, None), (0.0, 0.0, None),
     (2.0, 0.0, None), (None, 0.0, None), (2.0, -1.0, None), (2.0, math.inf, None),
     (2.0, math.nan, None), (math.nan, 0.0, None), (2.0, None, None)],
)  # fmt: skip
def test_of_a_reference_that_was_not_timed_there_is_no_speed_up(
    index, reference_ms, stated, reported
):
    index.run("run", 10, reference_latency_ms=reference_ms, speedup_factor=stated)
    assert index.table("runs", "reported_speedup") == [(reported,)]


def test_inputs_that_need_not_be_read_have_no_part_in_the_floor(index):
    matrix(index, "gqa-paged")
    index.run("run", 20_000)
    assert caveats(index) == []


def authors(index: Index) -> None:
    """Three groups on one device: the baseline passed two of them, ann tried two, bob failed."""
    index.add("environments")
    index.add("operations")
    for workload in ("w1", "w2", "w3"):
        index.add("workloads", workload_digest=workload, external_id=workload)
    for author in ("baseline", "ann", "bob"):
        path = f"solutions/{author}.json"
        index.add(
            "implementations", implementation_digest=author, author_directory=author, path=path
        )
    for author, workload, latency in (
        ("baseline", "w1", 100),
        ("baseline", "w2", 100),
        ("ann", "w1", 50),
        ("ann", "w2", 200),
        ("ann", "w3", 70),
        ("bob", "w1", None),
    ):
        index.run(
            f"{author} {workload}",
            latency,
            comparison_key=workload if latency else f"{workload} without metric",
            workload_digest=workload,
            implementation_digest=author,
            author_directory=author,
        )


def test_authors_are_compared_inside_groups_and_failures_stay(index):
    authors(index)
    found = index.table(
        "leaderboard_authors",
        "author",
        "groups_available",
        "groups_attempted",
        "groups_passed",
        "wins",
        "runs_attempted",
        "correctness_rate",
        "groups_with_baseline",
        "speedup_over_baseline",
        where="family = 'all'",
    )
    assert found == [
        ("ann", 3, 3, 3, 2, 3, 1.0, 2, pytest.approx(math.sqrt(2 * 0.5))),
        ("baseline", 3, 2, 2, 1, 2, 1.0, 2, 1.0),
        ("bob", 3, 1, 0, 0, 1, 0.0, 0, None),
    ]
    assert index.table("leaderboard_authors", "family", where="author = 'bob'") == [
        ("all",),
        ("gemm",),
    ]


def test_a_repeat_counts_the_same_for_an_author_and_for_a_solution(index):
    """One lucky repeat in three: 90 times as fast by the fastest, 0.9 by the median."""
    index.add("environments")
    index.add("operations")
    index.add("workloads", external_id="w")
    for author, latencies in (("baseline", (90, 95, 85)), ("ann", (1, 100, 100))):
        path = f"solutions/{author}.json"
        index.add(
            "implementations", implementation_digest=author, author_directory=author, path=path
        )
        repeats(index, author, *latencies, author_directory=author)
    solutions = index.table("leaderboard_solutions", "author", "speedup_over_baseline", "wins")
    by_author = index.table(
        "leaderboard_authors", "author", "speedup_over_baseline", "wins", where="family = 'all'"
    )
    assert solutions == [("ann", pytest.approx(0.9), 1), ("baseline", 1.0, 1)]
    assert [row[:2] for row in by_author] == [("ann", pytest.approx(0.9)), ("baseline", 1.0)]
    upstream = index.table("leaderboard_authors_upstream", "author", "score", "wins")
    assert upstream == [("ann", 85.0, 1), ("baseline", 1.0, 0)]


def test_two_authors_with_the_same_source_both_have_their_runs(index):
    authors(index)
    for author in ("ann", "zoe"):
        index.add("implementations", implementation_digest="shared", author_directory=author,
                  path=f"solutions/{author}/shared.json")  # fmt: skip
    for author, latency in (("ann", 40), ("zoe", 20), ("zoe", None)):
        index.run(
            f"{author} shared {latency}",
            latency,
            workload_digest="w1",
            implementation_digest="shared",
            author_directory=author,
            path=f"traces/{author}",
        )
    found = index.table(
        "author_results", "author", "runs_attempted", "runs_passed", "best_ns",
        where="workload_digest = 'w1'",
    )  # fmt: skip
    assert found == [
        ("ann", 2, 2, 40),
        ("baseline", 1, 1, 100),
        ("bob", 1, 0, None),
        ("zoe", 2, 1, 20),
    ]
    assert index.table("rank_facts", "median_ns", where="minimum_ns = 20") == [(30,)]
    upstream = dict(index.table("leaderboard_authors_upstream", "author", "score"))
    assert (upstream["ann"], upstream["zoe"]) == (2.5, 0.0)
    [(passed,)] = index.table("leaderboard_operations", "authors_passed")
    assert passed == 3


def test_the_baselines_source_by_somebody_else_is_still_the_baseline(index):
    index.add("environments")
    index.add("operations")
    index.add("workloads", external_id="w")
    for author, latency in (("ann", 50), ("baseline", 100)):
        index.add("implementations", implementation_digest="shared", author_directory=author,
                  path=f"solutions/{author}.json")  # fmt: skip
        index.run(author, latency, implementation_digest="shared", author_directory=author,
                  path=f"traces/{author}")  # fmt: skip
    assert index.table("author_results", "author", "baseline_ns", "speedup") == [
        ("ann", 100, 2.0),
        ("baseline", 100, 1.0),
    ]
    assert index.table("coverage", "has_baseline") == [(True,)]


UPSTREAM = ("author", "score", "wins", "groups_compared", "definitions_failed")


def test_upstreams_formula_averages_the_ratios_of_a_solution(index):
    authors(index)
    assert index.table("leaderboard_authors_upstream", *UPSTREAM) == [
        ("ann", 1.25, 1, 2, 0),
        ("baseline", 1.0, 0, 2, 0),
        ("bob", 0.0, 0, 0, 1),
    ]


def test_upstreams_formula_zeroes_a_solution_that_failed_and_takes_the_authors_best(index):
    authors(index)

    def by_ann(solution: str, w1: int | None, w2: int | None) -> tuple[object, ...]:
        path = f"solutions/{solution}.json"
        index.add(
            "implementations", implementation_digest=solution, author_directory="ann", path=path
        )
        for workload, latency in (("w1", w1), ("w2", w2)):
            index.run(
                f"{solution} {workload}",
                latency,
                workload_digest=workload,
                author_directory="ann",
                implementation_digest=solution,
            )
        rows = index.table("leaderboard_authors_upstream", *UPSTREAM)
        return next(row for row in rows if row[0] == "ann")

    assert by_ann("fast where it works", 1, None) == ("ann", 1.25, 1, 2, 0)
    assert by_ann("steady", 50, 25) == ("ann", 3.0, 2, 2, 0)
    assert by_ann("slower", 80, 80) == ("ann", 3.0, 2, 2, 0)


def test_upstreams_formula_leaves_out_what_upstream_did_not_report(index):
    authors(index)
    before = index.table("leaderboard_authors_upstream", *UPSTREAM)
    for author in ("baseline", "ann"):
        index.run(
            f"{author} again",
            5 if author == "ann" else 500,
            source="kernelindex-controlled",
            workload_digest="w1",
            protocol_digest="controlled",
            author_directory=author,
        )
    assert index.table("leaderboard_authors_upstream", *UPSTREAM) == before


def test_fast_p_counts_failures_as_zero_and_leaves_out_what_was_not_tried(index):
    authors(index)
    found = index.table(
        "fast_p_curves",
        "author",
        "p",
        "fast_p",
        "groups_compared",
        "coverage",
        where="family = 'all' and p in (0.5, 1.0, 2.0, 3.0)",
    )
    assert [row[1:3] for row in found if row[0] == "ann"] == [
        (0.5, 1.0),
        (1.0, 0.5),
        (2.0, 0.5),
        (3.0, 0.0),
    ]
    assert {row[2:] for row in found if row[0] == "bob"} == {(0.0, 1, 0.5)}


def test_a_skipped_solution_was_not_attempted(index):
    authors(index)
    index.run("skipped", None, workload_digest="w2", author_directory="bob", not_measured=True)
    found = index.table(
        "leaderboard_authors",
        "groups_attempted",
        "runs_attempted",
        "runs_skipped",
        where="author = 'bob' and family = 'all'",
    )
    assert found == [(1, 1, 1)]


def test_coverage_shows_what_nobody_tested(index):
    authors(index)
    index.add("operations", operation_digest="lonely", name="lonely", family="rope")
    found = index.table(
        "coverage",
        "operation",
        "gpu_product",
        "workloads",
        "workloads_tried",
        "workloads_untested",
        "has_baseline",
    )
    assert found == [("definition", GPU, 3, 3, 0, True), ("lonely", GPU, 0, 0, 0, False)]


def test_solutions_stand_beside_the_baseline_and_the_best(index):
    authors(index)
    found = index.table(
        "leaderboard_solutions",
        "implementation_digest",
        "groups_attempted",
        "groups_passed",
        "wins",
        "speedup_over_baseline",
        "slowdown_to_best",
    )
    assert found == [
        ("ann", 3, 3, 2, pytest.approx(1.0), pytest.approx(2 ** (1 / 3))),
        ("baseline", 2, 2, 1, 1.0, pytest.approx(math.sqrt(2))),
        ("bob", 1, 0, 0, None, None),
    ]


def test_operations_name_who_wins_most(index):
    authors(index)
    found = index.table(
        "leaderboard_operations",
        "operation",
        "runs",
        "runs_eligible",
        "comparison_groups",
        "authors_passed",
        "most_wins_author",
        "most_wins",
    )
    assert found == [("definition", 6, 5, 3, 2, "ann", 2)]


def test_freshness_dates_each_author_of_a_dataset(index):
    index.revision("r1", "2026-03-01")
    index.file("r1", "traces", "1")
    index.run("old", 10, "2026-01-05")
    index.run("new", 10, "2026-02-05")
    [(dataset, revision, runs, newest)] = index.table(
        "freshness", "dataset", "newest_revision", "runs", "newest_run_at"
    )
    assert (dataset, revision, runs, f"{newest:%Y-%m-%d}") == ("kernels", "r1", 2, "2026-02-05")
