"""What was seen leads to one status, and to none that was not seen."""

import pytest

from assets.reruns.worker import processes
from assets.reruns.worker.codes import REASONS, Status, reason
from assets.reruns.worker.outside import DESTINATION, GRAPH, PLAIN, Raw, Timed, assess
from assets.reruns.worker.verdict import (
    STATUS_OF,
    Series,
    first_line_of,
    reason_of_failure,
    reasons_of_idleness,
    reasons_of_judgement,
    reasons_of_kept,
    reasons_of_outside,
    reasons_of_revealing,
    reasons_of_row,
    reasons_of_timing,
    status_for,
)


def series(device: int, wall: int, gap: int = 10_000, late: int = 5_000) -> Series:
    return Series({0: [device] * 5}, {0: [wall] * 5}, [gap] * 5, [late] * 5)


def codes(reasons: list[dict[str, str]]) -> list[str]:
    return [entry["code"] for entry in reasons]


def row(call_ns: int, gated_ns: int | None = None) -> Raw:
    """Raw times of a graph: `call_ns` in a row of 100, `gated_ns` behind gates of 26 us."""
    gated = call_ns if gated_ns is None else gated_ns
    rows, nothing = (timed(300_000 + 100 * call_ns), timed(300_000))
    return Raw(GRAPH, DESTINATION, 100, 64, rows, timed(64 * (26_000 + gated)), nothing,
               timed(64 * 26_000))  # fmt: skip


def timed(value_ns: int) -> tuple[Timed, ...]:
    return tuple(Timed(number, value_ns) for number in range(6))


def outside(
    raw: Raw,
    inside: Series,
    floor_ns: int | None = None,
) -> list[str]:
    return codes(reasons_of_outside(raw, assess(raw), inside, "cuda", floor_ns))


def judged(**changes: object) -> dict[str, object]:
    correctness = judgement(**changes)["correctness"]
    return {"right": False, "wrong": 3, "outputs": 100, "unwritten": 0, "mutated": [],
            "correctness": correctness}  # fmt: skip


def judgement(**changes: object) -> dict[str, object]:
    output = {
        "name": "y", "right": False, "max_absolute_error": 1.0, "max_relative_error": 1.0,
        "matched_ratio": 0.9, "nan_output": 0, "nan_reference": 0, "nan_both": 0,
        "infinity_mismatch": 0, **changes,
    }  # fmt: skip
    correctness = {**output, "outputs": [output]}
    return {"correctness": correctness, "late_right": False, "early": False, "stale_of": None}


def test_every_reason_that_decides_is_explained() -> None:
    assert set(STATUS_OF) <= set(REASONS)


def test_no_reason_means_passed() -> None:
    assert status_for([]) is Status.PASSED
    assert status_for([reason("FEWER_SAMPLES")]) is Status.PASSED


def test_suspicion_outweighs_plain_mistakes() -> None:
    found = [reason("OUT_OF_TOLERANCE"), reason("MUTATED_INPUT")]
    assert status_for(found) is Status.REWARD_HACK


def test_trouble_with_the_machine_outweighs_what_the_solution_did() -> None:
    assert status_for([reason("RAISED"), reason("MISSING_TENSOR")]) is Status.INFRASTRUCTURE_ERROR


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (processes.ChildDied("gone"), "DIED"),
        (processes.ChildTimedOut("late"), "TOO_SLOW"),
        (processes.ChildTooLarge("big"), "MEMORY_LIMIT"),
        (processes.ChildTampered("forged"), "HARNESS_TAMPERING"),
        (processes.ChildRefused("WRONG_DTYPE", "x"), "WRONG_DTYPE"),
        (processes.ChildRefused("no such code", "Traceback\nValueError: x"), "RAISED"),
    ],
)
def test_failures_of_a_process_have_their_reason(error: processes.ChildFailed, code: str) -> None:
    assert reason_of_failure(error)["code"] == code


def test_honest_times_raise_no_suspicion() -> None:
    own = series(300_000, 340_000)
    assert reasons_of_timing(own, series(900_000, 950_000), 43_000) == []
    assert outside(row(295_000), own, 43_000) == []


def test_a_launch_bound_kernel_is_not_suspected() -> None:
    """5 us on the device, 80 us to launch: what the host takes is in no row of a graph."""
    own = series(5_000, 80_000)
    assert reasons_of_timing(own, series(20_000, 90_000), 300) == []
    assert outside(row(4_000), own, 300) == []


def test_work_after_the_end_event_is_noticed() -> None:
    late = series(5_000, 350_000, late=300_000)
    assert codes(reasons_of_timing(late, series(300_000, 340_000), None)) == ["UNSYNCHRONIZED_WORK"]


def test_the_copy_of_large_outputs_is_not_taken_for_late_work() -> None:
    own, reference = (series(n, n + 210_000, late=120_000) for n in (90_000, 400_000))
    assert reasons_of_timing(own, reference, None) == []


def test_events_that_miss_most_of_the_wall_time_are_noticed() -> None:
    own = series(300, 340_000, gap=339_000)
    assert codes(reasons_of_timing(own, series(300_000, 340_000), None)) == ["TIMER_DISAGREES"]


@pytest.mark.parametrize("said", [300, 150_000, 240_000])
def test_a_process_that_reports_less_than_the_clock_outside_saw_is_noticed(said: int) -> None:
    assert outside(row(300_000), series(said, said + 200)) == ["TIMER_DISAGREES"]


def test_a_kernel_that_finds_its_own_buffers_again_may_be_a_little_faster_there() -> None:
    """As seen on an H200: 636 us by events in the process, 681 us on fresh memory in a row."""
    assert outside(row(681_000, 651_000), series(636_000, 810_000)) == []


def test_plain_calls_are_compared_with_the_hosts_clock() -> None:
    raw = Raw(PLAIN, DESTINATION, 1, 1, (), timed(150_000), (), timed(50_000))
    assert outside(raw, series(5_000, 99_000)) == []
    assert outside(raw, series(5_000, 40_000)) == ["TIMER_DISAGREES"]


@pytest.mark.parametrize("row_ns", [2_000, 13_000])
def test_rows_that_cannot_have_been_made_call_by_call_are_noticed(row_ns: int) -> None:
    assert outside(row(row_ns, 20_000), series(20_000, 80_000)) == ["BATCHED_ROW"]


def test_a_row_slower_than_its_gated_calls_says_nothing_against_anybody() -> None:
    assert outside(row(20_000, 12_000), series(21_000, 80_000)) == []


def test_work_that_goes_on_while_the_process_stands_still_is_noticed() -> None:
    assert reasons_of_idleness((80_000, 95_000, 2_500_000), (90_000,)) == []
    assert codes(reasons_of_idleness((1_900_000,) * 5, (90_000,))) == ["LEFT_WORK_RUNNING"]


def test_contents_that_somebody_works_on_while_they_are_written_are_noticed() -> None:
    usual = (2_000_000, 2_100_000)
    assert reasons_of_revealing((2_200_000, 9_000_000, 2_300_000), usual, 1.0) == []
    assert reasons_of_revealing((8_000_000,), usual, 4.0) == []
    assert reasons_of_revealing((1_500_000,), usual, 0.1) == []
    assert codes(reasons_of_revealing((9_000_000,), usual, 1.0)) == ["LEFT_WORK_RUNNING"]
    assert reasons_of_revealing((9_000_000,), (), 1.0) == []


def test_a_time_below_the_floor_is_suspected_from_either_clock() -> None:
    own = series(30_000, 60_000)
    found = reasons_of_timing(own, series(300_000, 340_000), 43_000)
    assert codes(found) == ["FASTER_THAN_ROOFLINE"]
    assert outside(row(30_000), own, 43_000) == ["FASTER_THAN_ROOFLINE"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({**judged(), "right": True}, []),
        ({**judged(), "right": True, "mutated": ["q"]}, ["MUTATED_INPUT"]),
        ({**judged(), "right": True, "mutated": ["state"]}, []),
        ({**judged(), "unwritten": 1}, ["UNFINISHED_ROW"]),
        ({**judged(matched_ratio=1.0), "wrong": 0, "late": 2}, ["UNFINISHED_ROW"]),
        (judged(matched_ratio=0.1), ["CHANGED_AFTER_CHECK"]),
        (judged(), ["FAILED_RECHECK"]),
    ],
)
def test_what_was_read_after_a_row_has_its_reasons(
    found: dict[str, object], expected: list[str]
) -> None:
    assert codes(reasons_of_row(found, ["state"])) == expected


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in run\n    f(x)\n'
            "TypeError: f(): incompatible function arguments. The following are supported:\n"
            "    1. (arg0: torch.Tensor) -> None\n\nInvoked with: tensor([1.],\n"
            "       device='cuda:0', dtype=torch.float16)\n",
            "TypeError: f(): incompatible function arguments. The following are supported:",
        ),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n\n"
            "During handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no\nmore\n',
            "ValueError: no",
        ),
        ("RuntimeError: ninja said no", "RuntimeError: ninja said no"),
        ("the build log\nand its last line\n", "and its last line"),
        ("", ""),
    ],
)
def test_a_raised_exception_is_named_by_its_type_and_first_line(detail: str, expected: str) -> None:
    assert first_line_of(detail) == expected
    error = processes.ChildRefused("RAISED", detail)
    assert reason_of_failure(error)["text"].endswith(expected)


def test_inputs_are_only_held_against_a_candidate_where_the_reference_leaves_them_alone() -> None:
    reference = {"mutated": ["state"], "aliased": []}
    kept = {"mutated": ["state", "q"], "aliased": []}
    reasons, notes = reasons_of_kept(kept, reference)
    assert codes(reasons) == ["MUTATED_INPUT"]
    assert "q" in reasons[0]["text"]
    assert codes(notes) == ["MUTATES_LIKE_REFERENCE"]


@pytest.mark.parametrize(
    ("changes", "timed", "expected"),
    [
        ({"right": True}, True, []),
        ({}, False, ["OUT_OF_TOLERANCE"]),
        ({}, True, ["FAILED_RECHECK", "OUT_OF_TOLERANCE"]),
        ({"matched_ratio": 0.1}, True, ["CHANGED_AFTER_CHECK"]),
        ({"nan_output": 3}, False, ["NAN_OUTPUT"]),
        ({"nan_reference": 3, "nan_both": 3}, False, ["NAN_BOTH_SIDES"]),
        ({"nan_reference": 3}, False, ["REFERENCE_NOT_FINITE"]),
        ({"infinity_mismatch": 1}, False, ["INFINITY_MISMATCH"]),
    ],
)
def test_a_judgement_has_its_reasons(
    changes: dict[str, object], timed: bool, expected: list[str]
) -> None:
    assert codes(reasons_of_judgement(judgement(**changes), timed)) == expected


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({"late_right": True}, "UNSYNCHRONIZED_WORK"),
        ({"early": True}, "STARTED_EARLY"),
        ({"stale_of": 7}, "STALE_OUTPUT"),
    ],
)
def test_wrong_outputs_that_are_right_elsewhere_are_suspected(
    found: dict[str, object], code: str
) -> None:
    assert codes(reasons_of_judgement({**judgement(), **found}, timed=False)) == [code]
