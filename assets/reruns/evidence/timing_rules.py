"""Rules about times: statistics, speed-up, and what the clocks say about each other."""

from collections.abc import Iterator
from functools import lru_cache

from assets.reruns.evidence.claims import Fault, ItemClaims, SessionClaims
from assets.reruns.result_documents import Statistics
from assets.reruns.worker.codes import Status
from assets.reruns.worker.statistics import Statistics as Summary
from assets.reruns.worker.statistics import speedup, summarize
from assets.reruns.worker.verdict import OUTSIDE_ALLOWANCE_NS, reasons_of_timing

_SERIES = (
    ("statistics", "candidate", "device"),
    ("wall_statistics", "candidate", "wall"),
    ("reference_statistics", "reference", "device"),
)
_FROM_TIMES = frozenset({"TIMER_DISAGREES", "FASTER_THAN_ROOFLINE"})

Rounds = tuple[tuple[int, tuple[int, ...]], ...]


def statistics_follow_from_the_samples(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """Every summary is that of the raw samples, the bootstrap interval too."""
    outcome = item.outcome
    given = [getattr(outcome, field) for field, _, _ in _SERIES]
    missing = [field for (field, _, _), one in zip(_SERIES, given, strict=True) if one is None]
    if missing:
        if outcome.status is Status.PASSED or len(missing) < len(given):
            yield Fault(item.at(missing[0]), "is null, of an item that passed or was measured")
        return
    for (field, subject, mode), claimed in zip(_SERIES, given, strict=True):
        found = _summary(_rounds(item, subject, mode))
        yield from _differences(item.at(field), claimed, found)
    if outcome.status is Status.PASSED and min(one.minimum for one in given) < 1:
        yield Fault(item.at("statistics.minimum"), "is 0 ns; a call takes time")


def speedup_follows_from_the_medians(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """The speed-up is the reference's median over the solution's."""
    reference = _summary(_rounds(item, "reference", "device")) if item.measured else None
    own = _summary(_rounds(item, "candidate", "device")) if item.measured else None
    expected = speedup(reference, own)
    if item.outcome.speedup != expected:
        yield Fault(item.at("speedup"), f"is {item.outcome.speedup}; its samples give {expected}")


def clocks_are_judged_as_they_stand(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """What the clocks and the floor say about a measured item stands among its reasons."""
    outcome = item.outcome
    claimed = {entry.code for entry in outcome.reasons} & _FROM_TIMES
    if not item.measured:
        for code in sorted(claimed):
            yield Fault(item.at("reasons"), f"say {code} of an item that was not measured")
        return
    if outcome.outside_ns_per_call is None:
        yield Fault(item.at("outside_ns_per_call"), "is null; every measured item has one")
        return
    found = reasons_of_timing(
        item.series("candidate"),
        item.series("reference"),
        outcome.outside_ns_per_call,
        OUTSIDE_ALLOWANCE_NS[session.environment.device.kind],
        outcome.roofline.floor_ns if outcome.roofline else None,
    )
    for entry in found:
        if entry["code"] in _FROM_TIMES - claimed:
            yield Fault(item.at("reasons"), f"lack {entry['code']}: {entry['text']}")
    for code in sorted(claimed - {entry["code"] for entry in found}):
        yield Fault(item.at("reasons"), f"say {code}, which its samples do not show")


def _rounds(item: ItemClaims, subject: str, mode: str) -> Rounds:
    rounds: dict[int, list[int]] = {}
    for sample in item.of(subject, mode):
        value = sample.device_ns if mode == "device" else sample.wall_ns or 0
        rounds.setdefault(sample.round, []).append(value)
    return tuple((number, tuple(values)) for number, values in rounds.items())


@lru_cache(maxsize=512)
def _summary(rounds: Rounds) -> Summary | None:
    # Kept, because a reference's series is that of every item beside it.
    return summarize(dict(rounds))


def _differences(path: str, claimed: Statistics, found: Summary | None) -> Iterator[Fault]:
    if found is None:
        yield Fault(path, "stands without any sample in samples.jsonl")
        return
    for field in Statistics.model_fields:
        says, gives = getattr(claimed, field), getattr(found, field)
        if says != gives:
            yield Fault(f"{path}.{field}", f"is {says}; samples.jsonl gives {gives}")
