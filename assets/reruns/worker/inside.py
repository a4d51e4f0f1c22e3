"""What a subject's own process measures: device events and wall time of single calls, in rounds.

It is detail beside the measurement from outside, and a set of checks that need the stream's order
(early and late work). Pure standard library; the calls are made by `runner.py`.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from .codes import reason
from .statistics import share
from .subjects import Candidate, Plan
from .turns import Turns

LEAST_SAMPLES = 20
PROBED_ROUNDS = 3
MAX_NS = 2**53
_SETTLE_S = 0.02
_random = secrets.SystemRandom()

#: Has a subject's last call written out and judged: candidate, seed, name, timed or not.
Keep = Callable[[Candidate, int, str, bool], None]


def measure_inside(turns: Turns, keep: Keep) -> None:
    """Interleaved rounds of device and wall calls over candidates and reference."""
    candidates = [candidate for candidate in turns.group.candidates if candidate.alive]
    if not candidates or turns.reference is None:
        return
    plans: dict[int, Plan] = {}
    for candidate in [*candidates, None]:
        turns.turn(candidate, lambda c: plans.__setitem__(id(c), _plan(turns, c)))
    for number in range(turns.around.protocol.rounds):
        order: list[Candidate | None] = [*candidates, None]
        _random.shuffle(order)
        for candidate in order:
            if candidate is None or candidate.alive:
                turns.turn(candidate, lambda c: _round(turns, keep, c, plans[id(c)], number))  # noqa: B023
        turns.around.observe()


def fresh_seed() -> int:
    """A seed that nobody can foresee."""
    return _random.randrange(2**62)


def _plan(turns: Turns, candidate: Candidate | None) -> Plan:
    """Warm up by time, and decide how many samples the subject's budget allows."""
    protocol = turns.around.protocol
    subject = turns.subject_of(candidate)
    budget_s = protocol.candidate_budget_s
    if candidate is None:
        budget_s = protocol.reference_budget_s
        subject.spent_s = 0.0
    answer = subject.ask("warm", seed=fresh_seed(), seconds=protocol.warmup_s, least=3)
    per_call_s = answer.outside_ns / 1e9 / int(answer.values["calls"])
    calls = protocol.samples + protocol.wall_samples
    allowed = int(budget_s / max(per_call_s, 1e-9))
    samples, wall_samples = protocol.samples, protocol.wall_samples
    if allowed < calls:
        samples = min(samples, max(LEAST_SAMPLES if candidate else 3, allowed * 4 // 5))
        wall_samples = min(wall_samples, max(3, allowed // 5))
        if candidate is not None:
            candidate.notes.append(reason("FEWER_SAMPLES", f"{samples} samples."))
    kept = _random.sample(range(samples), min(protocol.kept_calls, samples))
    probed = _random.sample(range(protocol.rounds), min(PROBED_ROUNDS, protocol.rounds))
    return Plan(
        samples,
        wall_samples,
        frozenset(kept if candidate else ()),
        frozenset(probed if candidate else ()),
    )


def _round(turns: Turns, keep: Keep, candidate: Candidate | None, plan: Plan, number: int) -> None:
    subject = turns.subject_of(candidate)
    if candidate is None:
        subject.spent_s = 0.0
    rounds = turns.around.protocol.rounds
    subject.ask("place", seed=fresh_seed())
    subject.ask("warm", seed=fresh_seed(), seconds=_SETTLE_S, least=2)
    own = share(plan.samples, rounds, number)
    probed = _random.choice(own) if candidate and own and number in plan.probed else None
    for index in own:
        if candidate is not None and index == probed:
            _probe(turns, keep, candidate, number)
            if not candidate.alive:
                return
        seed = fresh_seed()
        values = subject.call(seed, "device").values
        _record(turns, candidate, "device", number, index, seed, values)
        if candidate is not None and index in plan.kept:
            keep(candidate, seed, f"timed-{index}", True)
            if not candidate.alive:
                return
    for index in share(plan.wall_samples, rounds, number):
        seed = fresh_seed()
        values = subject.call(seed, "wall").values
        _record(turns, candidate, "wall", number, index, seed, values)


def _probe(turns: Turns, keep: Keep, candidate: Candidate, number: int) -> None:
    """An untimed call between timed ones, judged by what was ready in stream order.

    Behind the long runway of this probe shows both what starts early and what ends late.
    """
    seed = fresh_seed()
    turns.subject_of(candidate).call(seed, "probe_start", poisoned=True)
    keep(candidate, seed, f"probe-{number}", True)


def _record(
    turns: Turns,
    candidate: Candidate | None,
    mode: str,
    number: int,
    index: int,
    seed: int,
    values: Mapping[str, Any],
) -> None:
    subject = turns.subject_of(candidate)
    device_ns, wall_ns = int(values["device_ns"]), int(values["wall_ns"])
    if not (0 <= device_ns <= MAX_NS and 0 <= wall_ns <= MAX_NS):
        raise ValueError(f"{device_ns} and {wall_ns} ns are no times")
    series = subject.series
    if mode == "device":
        series.device.setdefault(number, []).append(device_ns)
    else:
        series.wall.setdefault(number, []).append(wall_ns)
        series.event_gaps.append(wall_ns - device_ns)
        series.late.append(int(values["late_ns"]))
    subject.rows.append(
        {
            "subject": subject.name,
            "mode": mode,
            "round": number,
            "index": index,
            "seed": seed,
            "device_ns": device_ns,
            "wall_ns": wall_ns if mode == "wall" else None,
        }
    )
