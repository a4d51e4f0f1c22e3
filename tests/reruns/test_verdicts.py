"""Verdicts compare like with like, and nothing but a clean GPU session is verified."""

import pytest

from assets.reruns.controlled_protocol import is_approved
from assets.reruns.verdicts import Timed, Unverified, Verdict, compare, unverified_because
from assets.reruns.worker.job import Protocol

REPORTED = Timed("passed", "NVIDIA H200", 100_000)


def controlled(value_ns: int, spread_ns: int = 500) -> Timed:
    return Timed("passed", "NVIDIA H200", value_ns, value_ns - spread_ns, value_ns + spread_ns)


@pytest.mark.parametrize(
    ("value_ns", "verdict"),
    [
        (100_000, Verdict.REPRODUCED),
        (109_900, Verdict.REPRODUCED),
        (80_000, Verdict.FASTER),
        (130_000, Verdict.SLOWER),
    ],
)
def test_times_on_one_device_are_compared(value_ns: int, verdict: Verdict) -> None:
    assert compare(REPORTED, controlled(value_ns)).verdict is verdict


def test_an_interval_that_reaches_the_bound_reproduces() -> None:
    assert compare(REPORTED, controlled(120_000, 12_000)).verdict is Verdict.REPRODUCED


def test_times_on_other_hardware_are_not_compared() -> None:
    found = compare(Timed("passed", "NVIDIA B200", 100_000), controlled(50_000))
    assert (found.verdict, found.ratio) == (Verdict.OTHER_HARDWARE, None)


def test_failures_are_compared_by_how_they_fail() -> None:
    broken = Timed("incorrect_numerical", "NVIDIA H200", None)
    assert compare(REPORTED, broken).verdict is Verdict.FAILED
    assert compare(broken, broken).verdict is Verdict.REPRODUCED
    assert compare(broken, controlled(1_000)).verdict is Verdict.PASSES


GOOD = {
    "status": "passed",
    "on_gpu": True,
    "approved_protocol": True,
    "clean_calibration": True,
    "complete_session": True,
    "cached_build": False,
    "worker_agrees": True,
}


def test_a_clean_pass_on_a_gpu_is_verified() -> None:
    assert unverified_because(**GOOD) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "timeout"}, Unverified.NOT_PASSED),
        ({"on_gpu": False}, Unverified.NOT_ON_A_GPU),
        ({"approved_protocol": False}, Unverified.PROTOCOL_NOT_APPROVED),
        ({"clean_calibration": False}, Unverified.CALIBRATION_NOT_CLEAN),
        ({"complete_session": False}, Unverified.INCOMPLETE_SESSION),
        ({"cached_build": True}, Unverified.CACHED_BUILD),
        ({"worker_agrees": False}, Unverified.WORKER_SAYS_NO),
    ],
)
def test_whatever_is_not_clean_keeps_its_reason(
    change: dict[str, object], reason: Unverified
) -> None:
    assert unverified_because(**{**GOOD, **change}) == [reason]  # type: ignore[arg-type]


def test_only_the_protocols_own_parameters_are_approved() -> None:
    assert is_approved(Protocol().document())
    assert is_approved(Protocol(samples=1000).document())
    assert not is_approved(Protocol(samples=20).document())
    assert not is_approved(Protocol(flush_factor=0.0).document())
