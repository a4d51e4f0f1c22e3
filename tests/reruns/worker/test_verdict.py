"""What was seen leads to one status, and to none that was not seen."""

import pytest

from assets.reruns.worker import processes
from assets.reruns.worker.codes import REASONS, Status, reason
from assets.reruns.worker.verdict import (
    STATUS_OF,
    Series,
    reason_of_failure,
    reasons_of_judgement,
    reasons_of_kept,
    reasons_of_timing,
    status_for,
)


def series(device: int, wall: int, gap: int = 10_000, late: int = 5_000) -> Series:
    return Series({0: [device] * 5}, {0: [wall] * 5}, [gap] * 5, [late] * 5)


def codes(reasons: list[dict[str, str]]) -> list[str]:
    return [entry["code"] for entry in reasons]


def suspicions(
    candidate: Series, reference: Series, outside_ns: int | None, floor_ns: int | None
) -> list[dict[str, str]]:
    return reasons_of_timing(candidate, reference, outside_ns, 30_000, floor_ns)


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
    assert suspicions(series(300_000, 340_000), series(900_000, 950_000), 310_000, 43_000) == []


def test_a_launch_bound_kernel_is_not_suspected() -> None:
    """5 us on the device, 80 us to launch: the row takes as long as the wall clock says."""
    assert suspicions(series(5_000, 80_000), series(20_000, 90_000), 78_000, 300) == []


def test_work_after_the_end_event_is_noticed() -> None:
    found = suspicions(series(5_000, 350_000, late=300_000), series(300_000, 340_000), None, None)
    assert codes(found) == ["UNSYNCHRONIZED_WORK"]


def test_the_copy_of_large_outputs_is_not_taken_for_late_work() -> None:
    both = {"late": 120_000}
    assert (
        suspicions(series(90_000, 300_000, **both), series(400_000, 450_000, **both), None, None)
        == []
    )


def test_events_that_miss_most_of_the_wall_time_are_noticed() -> None:
    found = suspicions(series(300, 340_000, gap=339_000), series(300_000, 340_000), None, None)
    assert codes(found) == ["TIMER_DISAGREES"]


def test_a_process_that_lies_on_both_clocks_is_noticed_from_outside() -> None:
    found = suspicions(series(300, 500, gap=200), series(300_000, 340_000), 310_000, None)
    assert codes(found) == ["TIMER_DISAGREES"]


def test_a_median_below_the_floor_is_suspected() -> None:
    found = suspicions(series(30_000, 60_000), series(300_000, 340_000), 50_000, 43_000)
    assert codes(found) == ["FASTER_THAN_ROOFLINE"]


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
