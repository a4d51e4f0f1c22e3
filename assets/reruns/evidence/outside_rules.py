"""Rules of `kernelindex-controlled-v2`: what was measured from outside, and what follows."""

from collections.abc import Iterator
from dataclasses import asdict

from assets.reruns.evidence.claims import Fault, ItemClaims, SessionClaims
from assets.reruns.result_documents import OutsideTimes
from assets.reruns.worker.codes import Status
from assets.reruns.worker.outside import PLAIN, OutsideError, assess, speedup
from assets.reruns.worker.verdict import reasons_of_outside, reasons_of_timing

_FROM_TIMES = frozenset({"TIMER_DISAGREES", "FASTER_THAN_ROOFLINE", "BATCHED_ROW"})


def assessment_follows_from_the_times(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """Value, interval, resolution and all else are those of the raw times."""
    outcome = item.outcome
    unshared = any(note.code == "NO_SHARED_MEMORY" for note in outcome.notes)
    if outcome.outside is None:
        if outcome.outside_assessment or outcome.reference_outside:
            yield Fault(item.at("outside"), "is null beside what would follow from it")
        if outcome.status is Status.PASSED and not unshared:
            yield Fault(item.at("outside"), "is null; it passed without having been measured")
        return
    try:
        found = asdict(assess(outcome.outside.raw()))
    except OutsideError as error:
        yield Fault(item.at("outside"), str(error))
        return
    if outcome.outside_assessment is None:
        yield Fault(item.at("outside_assessment"), "is null beside raw times")
        return
    for field, gives in found.items():
        says = getattr(outcome.outside_assessment, field)
        if says != gives:
            yield Fault(item.at(f"outside_assessment.{field}"), f"is {says}; outside gives {gives}")


def rounds_are_those_of_the_protocol(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """As many rows and gated calls as the protocol asks for, in each of its rounds."""
    protocol = session.bundle.protocol
    for name in ("outside", "reference_outside"):
        times: OutsideTimes | None = getattr(item.outcome, name)
        if times is None:
            continue
        plain = times.kind == PLAIN
        gated = protocol.calls_per_round if plain else protocol.gated_per_round
        wanted = {"gated": gated, "null_gated": gated}
        wanted |= dict.fromkeys(_ROWS, 0 if plain else protocol.rows_per_round)
        copies = protocol.calls_per_round if times.outputs == "copied" else 0
        wanted |= {"copied": copies, "copied_null": copies}
        for series, count in wanted.items():
            found = [timed.round for timed in getattr(times, series)]
            rounds = range(protocol.outside_rounds)
            if sorted(found) != [number for number in rounds for _ in range(count)]:
                message = f"has {len(found)} times; {count} in each round were asked for"
                yield Fault(item.at(f"{name}.{series}"), message)


_ROWS = ("rows", "null_rows")


def speedup_follows_from_outside(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """The speed-up is the reference's outside value over the solution's, of one kind."""
    outcome = item.outcome
    expected = None
    if outcome.outside is not None:
        reference = outcome.reference_outside.raw() if outcome.reference_outside else None
        try:
            expected = speedup(reference, outcome.outside.raw())
        except OutsideError as error:
            yield Fault(item.at("reference_outside"), str(error))
            return
    if outcome.speedup != expected:
        yield Fault(item.at("speedup"), f"is {outcome.speedup}; its times give {expected}")


def outside_times_are_judged_as_they_stand(
    session: SessionClaims, item: ItemClaims
) -> Iterator[Fault]:
    """What the clocks and the floor say about a measured item stands among its reasons."""
    outcome = item.outcome
    claimed = {entry.code for entry in outcome.reasons} & _FROM_TIMES
    if not item.measured or outcome.outside is None:
        return
    raw, floor = outcome.outside.raw(), outcome.roofline.floor_ns if outcome.roofline else None
    own, reference = item.series("candidate"), item.series("reference")
    kind = session.environment.device.kind
    found = reasons_of_outside(raw, assess(raw), own, kind, floor)
    found += reasons_of_timing(own, reference, floor)
    for entry in found:
        if entry["code"] in _FROM_TIMES - claimed:
            yield Fault(item.at("reasons"), f"lack {entry['code']}: {entry['text']}")
    for code in sorted(claimed - {entry["code"] for entry in found}):
        yield Fault(item.at("reasons"), f"say {code}, which its times do not show")


def promise_of_an_item_follows(session: SessionClaims, item: ItemClaims) -> Iterator[Fault]:
    """Whether an item may become verified is what its times, notes and device say."""
    outcome = item.outcome
    expected: list[str] = []
    if outcome.status is Status.PASSED:
        noted = {note.code for note in outcome.notes}
        expected = [code for code in ("NO_SHARED_MEMORY", "CACHED_BUILD") if code in noted]
        if session.environment.device.kind != "cuda":
            expected.append("CPU_FALLBACK")
        if not (item.problem and any(s.source == "random" for s in item.problem.inputs)):
            expected.append("INPUTS_NOT_VARIED")
        found = outcome.outside_assessment
        if "NO_SHARED_MEMORY" not in noted and not (found and found.resolved):
            expected.append("BELOW_RESOLUTION")
    if list(outcome.unverifiable_because) != expected:
        yield Fault(
            item.at("unverifiable_because"),
            f"is {list(outcome.unverifiable_because)}, not {expected}",
        )
    if outcome.verifiable is not (outcome.status is Status.PASSED and not expected):
        yield Fault(item.at("verifiable"), f"is {outcome.verifiable} beside {expected}")


def promise_of_the_session_follows(session: SessionClaims) -> Iterator[Fault]:
    """A session may verify something where it was clean and one of its items may."""
    result = session.result
    expected = result.calibration.clean and any(item.verifiable for item in result.items)
    if result.may_become_verified is not expected:
        yield Fault("may_become_verified", f"is {result.may_become_verified}, not {expected}")
