"""What a controlled run says about the run it reproduces, and how far it can be relied on.

Pure rules over values; `results.py` applies them to a result bundle.
"""

from dataclasses import dataclass
from enum import StrEnum

REPRODUCED_WITHIN = 0.10
"""A controlled value this close to the reported one reproduces it: reported values are means of
another harness, which one tenth does not tell apart."""


class Verdict(StrEnum):
    """How a controlled run compares with the reported one."""

    REPRODUCED = "reproduced"
    """The same outcome: a time within the bound, or the same way of failing."""
    FASTER = "faster"
    SLOWER = "slower"
    FAILED = "failed"
    """It passed when it was reported, and does not under this protocol."""
    PASSES = "passes"
    """It had failed when it was reported, and passes under this protocol."""
    OTHER_HARDWARE = "other_hardware"
    """Measured on another GPU product, so that the times are not compared."""


class Unverified(StrEnum):
    """What keeps a run from being verified."""

    NOT_PASSED = "NOT_PASSED"
    NOT_ON_A_GPU = "NOT_ON_A_GPU"
    PROTOCOL_NOT_APPROVED = "PROTOCOL_NOT_APPROVED"
    CALIBRATION_NOT_CLEAN = "CALIBRATION_NOT_CLEAN"
    INCOMPLETE_SESSION = "INCOMPLETE_SESSION"
    CACHED_BUILD = "CACHED_BUILD"
    WORKER_SAYS_NO = "WORKER_SAYS_NO"

    @property
    def explanation(self) -> str:
        """One sentence for people."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Unverified.NOT_PASSED: "The solution did not pass.",
    Unverified.NOT_ON_A_GPU: "It was measured on a CPU, which is for trials only.",
    Unverified.PROTOCOL_NOT_APPROVED: "The parameters are not the protocol's own, e.g. too few "
    "samples.",
    Unverified.CALIBRATION_NOT_CLEAN: "The machine was not as it should be, or changed meanwhile.",
    Unverified.INCOMPLETE_SESSION: "The session was cancelled, broke, or met its deadline.",
    Unverified.CACHED_BUILD: "A compiled library came out of a build cache.",
    Unverified.WORKER_SAYS_NO: "The worker itself says that the session can verify nothing.",
}


def trial_because(on_gpu: bool, approved_protocol: bool) -> tuple[Unverified, ...]:
    """Why a session is a trial, which is published nowhere; empty for one that is more."""
    obstacles = (
        (not on_gpu, Unverified.NOT_ON_A_GPU),
        (not approved_protocol, Unverified.PROTOCOL_NOT_APPROVED),
    )
    return tuple(reason for stands_in_the_way, reason in obstacles if stands_in_the_way)


@dataclass(frozen=True)
class Timed:
    """One side of a comparison; times in ns, null where nothing was measured."""

    status: str
    gpu_product: str
    value_ns: int | None
    low_ns: int | None = None
    high_ns: int | None = None


@dataclass(frozen=True)
class Comparison:
    """A verdict with controlled over reported time, below 1 where the rerun is faster."""

    verdict: Verdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def compare(reported: Timed, controlled: Timed) -> Comparison:
    """Compare a controlled run with the reported one."""
    if reported.gpu_product != controlled.gpu_product:
        return Comparison(Verdict.OTHER_HARDWARE)
    if controlled.status != "passed":
        same = reported.status == controlled.status
        return Comparison(Verdict.REPRODUCED if same else Verdict.FAILED)
    if reported.status != "passed" or not reported.value_ns or controlled.value_ns is None:
        return Comparison(Verdict.PASSES)
    ratio, low, high = (
        (controlled.value_ns if value is None else value) / reported.value_ns
        for value in (controlled.value_ns, controlled.low_ns, controlled.high_ns)
    )
    verdict = Verdict.REPRODUCED
    if high < 1 - REPRODUCED_WITHIN:
        verdict = Verdict.FASTER
    elif low > 1 + REPRODUCED_WITHIN:
        verdict = Verdict.SLOWER
    return Comparison(verdict, ratio, low, high)


def unverified_because(
    *,
    status: str,
    on_gpu: bool,
    approved_protocol: bool,
    clean_calibration: bool,
    complete_session: bool,
    cached_build: bool,
    worker_agrees: bool,
) -> list[Unverified]:
    """Everything that keeps a run from being verified; empty for a verified one."""
    obstacles = (
        (status != "passed", Unverified.NOT_PASSED),
        (not on_gpu, Unverified.NOT_ON_A_GPU),
        (not approved_protocol, Unverified.PROTOCOL_NOT_APPROVED),
        (not clean_calibration, Unverified.CALIBRATION_NOT_CLEAN),
        (not complete_session, Unverified.INCOMPLETE_SESSION),
        (cached_build, Unverified.CACHED_BUILD),
        (not worker_agrees, Unverified.WORKER_SAYS_NO),
    )
    return [reason for stands_in_the_way, reason in obstacles if stands_in_the_way]
