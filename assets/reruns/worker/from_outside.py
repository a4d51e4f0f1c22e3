"""The supervisor's part of measuring from outside: who has which memory, whose turn, what follows.

The measurer (`measurer.py`, in the referee's process) keeps the clock and reads the outputs; a
subject's process (`player.py`) only works off commands. Pure standard library.
"""

import fcntl
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import isolation
from .codes import reason
from .control import PAGE_BYTES
from .outside import (
    COPIED,
    DESTINATION,
    EXPORTED,
    GRAPH,
    OUTPUT_WAYS,
    PLAIN,
    OutsideError,
    Raw,
    Timed,
    assess,
)
from .processes import ChildDied, ChildRefused, ChildTampered, ChildTimedOut
from .statistics import median
from .subjects import Candidate
from .turns import RefereeFailed, Turns
from .verdict import (
    reasons_of_idleness,
    reasons_of_outside,
    reasons_of_revealing,
    reasons_of_row,
)

#: At most this many calls stand behind gates at once: what a device's queues hold without waiting.
MOST_GATES = 64
#: Where a reference is slow, rows are short enough that judging one takes about this long.
JUDGING_S = 0.5
REPLAY_GAIN = 2
_MEMORY_SHARE = 0.6
_WARM = {"rows": 2, "gated": 2, "called": 2}
_REFERENCE = "reference"


@dataclass
class Seating:
    """One subject's place: how it is measured and what was measured so far."""

    name: str
    kind: str
    calls: int
    singles: int
    outputs: str = DESTINATION
    series: dict[str, list[Timed]] = field(default_factory=dict)
    idle_ns: list[int] = field(default_factory=list)
    reveal_ns: list[int] = field(default_factory=list)

    @property
    def entries(self) -> int:
        """How many entries its ring has."""
        return max(self.calls, self.singles)

    def times(self, name: str) -> tuple[Timed, ...]:
        """One series so far."""
        return tuple(self.series.get(name, ()))


class FromOutside:
    """The last part of a group's session."""

    def __init__(
        self,
        turns: Turns,
        facts: dict[str, Any],
        reopen: Callable[[Candidate | None], None],
    ) -> None:
        """`facts` are what the reference does to its inputs; `reopen` starts a process afresh."""
        self._turns = turns
        self._facts = facts
        self._reopen = reopen
        self._protocol = turns.around.protocol
        self._on_gpu = turns.around.settings["device"] != "cpu"
        self._plans: dict[int, Seating] = {}
        self._seats: dict[int, Seating] = {}
        self._room: dict[str, Any] = {}

    def measure(self) -> None:
        """Measure every living candidate from outside, and say what follows."""
        candidates = [c for c in self._turns.group.candidates if c.alive]
        if not candidates or self._turns.reference is None:
            return
        try:
            self._make_room([None, *candidates])
            self._turns.turn(None, self._take_seat)
            for candidate in candidates:
                self._turns.turn(candidate, self._take_seat)
                self._turns.turn(candidate, self._warm_up)
            self._turns.turn(None, self._warm_up)
            for number in range(self._protocol.outside_rounds):
                order: list[Candidate | None] = [*[c for c in candidates if c.alive], None]
                secrets.SystemRandom().shuffle(order)
                for one in order:
                    if one is None or one.alive:
                        self._turns.turn(one, lambda c: self._round(c, number))  # noqa: B023
                self._turns.around.observe()
            for candidate in candidates:
                if candidate.alive:
                    self._turns.turn(candidate, self._conclude)
        except NoSharing as error:
            for candidate in candidates:
                if candidate.alive:
                    candidate.notes.append(reason("NO_SHARED_MEMORY", str(error)))
                    candidate.measured = True

    def _make_room(self, parties: Sequence[Candidate | None]) -> None:
        """Decide how long everybody's rows are, and have the shared memory made for that."""
        self._room = self._turns.ask_referee("room")
        kind = GRAPH if self._on_gpu else PLAIN
        self._plans = {id(party): self._planned(party, kind) for party in parties}
        entries = max(plan.entries for plan in self._plans.values())
        singles = max(plan.singles for plan in self._plans.values())
        self._turns.ask_referee("make_room", entries=entries, singles=singles)

    def _take_seat(self, candidate: Candidate | None) -> None:
        """Give a subject its ring, and have it capture its graphs where it can.

        The reference comes first, and its process is also the trusted one whose times are taken
        off; where it cannot be captured, nobody is, so that all are measured in one way.
        """
        kind = GRAPH if self._on_gpu else PLAIN
        if candidate is not None and self._seats[id(None)].kind == PLAIN:
            kind = PLAIN
        try:
            self._seat(candidate, kind)
        except ChildRefused as error:
            if error.kind == "NO_SHARED_MEMORY":
                raise NoSharing(error.detail[-300:]) from error
            if error.kind != "NOT_CAPTURED":
                raise
            self._seat_anew(candidate, "NOT_CAPTURED", error.detail)

    def _seat_anew(self, candidate: Candidate | None, code: str, detail: str) -> None:
        """Measure in plain calls, in a fresh process: a failed capture leaves nothing reliable."""
        self._turns.ask_referee("leave_seat", name=self._name(candidate))
        self._reopen(candidate)
        self._seat(candidate, PLAIN)
        if candidate is not None:
            lines = detail.strip().splitlines()
            candidate.notes.append(reason(code, lines[-1][:300] if lines else ""))

    def _seat(self, candidate: Candidate | None, kind: str) -> None:
        subject = self._turns.subject_of(candidate)
        seating = self._plans[id(candidate)]
        if kind == PLAIN:
            seating = Seating(seating.name, PLAIN, 1, seating.singles)
        entries = seating.entries
        sizes = [entries * self._room["input_bytes"], entries * self._room["output_bytes"]]
        descriptors = [_shared_memory("page", PAGE_BYTES)]
        try:
            if not self._on_gpu:
                descriptors += [_shared_memory("ring", size) for size in sizes]
            self._measurer_child().hand_over(descriptors)
            made = self._turns.ask_referee(
                "seat",
                name=seating.name,
                entries=entries,
                calls=seating.calls,
                singles=seating.singles,
                pid=subject.child.pid,
            )
            subject.child.hand_over(descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        subject.ask("attach", entries=entries, sizes=made["sizes"], handles=made["handles"])
        if candidate is None and self._on_gpu:
            subject.ask("prepare_nothing")
        answer = subject.ask(
            "prepare", kind=kind, calls=seating.calls, singles=seating.singles
        ).values
        seating.outputs = str(answer["outputs"])
        if seating.outputs not in OUTPUT_WAYS:
            raise ChildTampered("an answer names no way that outputs can take")
        if seating.outputs == EXPORTED:
            self._take_exports(candidate, seating, answer)
        self._seats[id(candidate)] = seating
        reference = self._seats[id(None)]
        if reference.kind == GRAPH and kind == GRAPH and not self._facts["mutated"]:
            # The reference could be captured in its own process: so it can in the measurer's.
            self._turns.ask_referee("capture_judging", name=seating.name)

    def _take_exports(
        self, candidate: Candidate | None, seating: Seating, answer: dict[str, Any]
    ) -> None:
        self._turns.ask_referee(
            "take_exports", name=seating.name, handles=answer["handles"], places=answer["places"]
        )

    def _planned(self, candidate: Candidate | None, kind: str) -> Seating:
        """How long a row is, and how many entries a gated call can be on.

        What the subject said of itself decides no more than that.
        """
        entry_bytes = self._room["input_bytes"] + self._room["output_bytes"]
        subjects = len(self._turns.subjects())
        share = int(self._room["free_bytes"] * _MEMORY_SHARE / (subjects + 2))
        fitting = max(1, min(self._protocol.ring_mib << 20, share) // entry_bytes)
        series = self._turns.subject_of(candidate).series
        usual_ns = max(1, median(series.device_values()))
        # In a graph, the reference costs less than its first calls did.
        slow_ns = max(1, int(self._facts["wall_ns"]) // (REPLAY_GAIN if kind == GRAPH else 1))
        judged = int(JUDGING_S * 1e9 / slow_ns)
        calls = 1
        if kind == GRAPH:
            wanted = int(self._protocol.row_ms * 1e6) // usual_ns
            calls = max(1, min(wanted, self._protocol.row_calls, fitting, max(judged, 4)))
        singles = max(1, min(fitting, MOST_GATES, max(judged, 4)))
        return Seating(self._name(candidate), kind, calls, singles)

    def _warm_up(self, candidate: Candidate | None) -> None:
        """A few steps that count nowhere; a graph that replays wrong is given up here."""
        if candidate is None:
            self._played(None, {**_WARM, **{f"null_{name}": n for name, n in _WARM.items()}})
            return
        if not candidate.alive:
            return
        seating = self._seats[id(candidate)]
        found = self._played(candidate, _WARM)
        wrong = [judged for judged in found["judged"] if not judged["right"]]
        if wrong and seating.kind == GRAPH:
            self._seat_anew(candidate, "REPLAYED_WRONG", "")
        else:
            self._judge(candidate, found)

    def _round(self, candidate: Candidate | None, number: int) -> None:
        protocol = self._protocol
        wanted = {
            "rows": protocol.rows_per_round,
            "gated": protocol.gated_per_round,
            "called": protocol.calls_per_round,
        }
        if candidate is None:
            wanted |= {f"null_{name}": count for name, count in wanted.items()}
            wanted["copied"] = protocol.calls_per_round
        found = self._played(candidate, wanted)
        seating = self._seats[id(candidate)]
        for name in wanted:
            for timed in found[name]:
                entry = Timed(round=number, **timed)
                seating.series.setdefault(name, []).append(entry)
        seating.idle_ns += [int(value) for value in found["idle_ns"]]
        seating.reveal_ns += [int(value) for value in found["reveal_ns"]]
        if candidate is not None:
            self._judge(candidate, found)
        elif any(not judged["right"] for judged in found["judged"]):
            raise RefereeFailed("the reference does not agree with itself from call to call")

    def _played(self, candidate: Candidate | None, wanted: dict[str, int]) -> dict[str, Any]:
        """One turn of the measurer with one subject; raises what the subject's process did."""
        subject = self._turns.subject_of(candidate)
        kinds = self._kinds_needed(candidate)
        plan: dict[str, Any] = {
            name: count for name, count in wanted.items() if _kind_of(name) in kinds
        }
        if candidate is None:
            subject.spent_s = 0.0
        left = subject.left_s()
        subject.child.send("play")
        found = self._turns.ask_referee(
            "turn",
            name=self._name(candidate),
            plan={**plan, "timeout_s": left},
            pids=isolation.family(subject.child.pid),
        )
        subject.spent_s += float(found["spent_s"])
        if found["ended"] == "timeout":
            subject.child.kill()
            raise ChildTimedOut(f"no answer within {left:.1f} s")
        if found["ended"] == "gone":
            raise ChildDied("the process ended in the middle of a row")
        try:
            subject.child.receive(min(left, 30.0))
        except ChildRefused as error:
            # What fails in a row is the solution's, whatever word its process has for it.
            raise ChildRefused("RAISED", error.detail) from error
        if found["ended"] == "failed":
            raise ChildTampered("a call failed, but no exception was reported")
        return found

    def _kinds_needed(self, candidate: Candidate | None) -> set[str]:
        if candidate is not None:
            return {self._seats[id(candidate)].kind}
        kinds = {seating.kind for seating in self._seats.values()}
        if any(seating.outputs == COPIED for seating in self._seats.values()):
            kinds.add(PLAIN)  # what copying costs is measured in plain calls
        own = self._seats[id(None)].kind
        return kinds if own == GRAPH else kinds - {GRAPH} | {PLAIN}

    def _judge(self, candidate: Candidate, found: dict[str, Any]) -> None:
        for judged in found["judged"]:
            candidate.note_correctness(judged["correctness"])
            reasons = reasons_of_row(judged, self._facts["mutated"])
            if reasons:
                candidate.fail(*reasons)
                return

    def _conclude(self, candidate: Candidate | None) -> None:
        if candidate is None:
            return
        subject, seating = self._turns.subject_of(candidate), self._seats[id(candidate)]
        reference = self._seats[id(None)]
        raw = _raw(seating, seating.kind, reference)
        try:
            assessment = assess(raw)
        except OutsideError as error:
            # The series are the measurer's, so this is no fault of the solution's.
            candidate.fail(reason("WORKER_FAILED", f"Its times from outside: {error}."))
            return
        candidate.outside = raw
        if seating.kind == PLAIN or reference.kind == GRAPH:
            candidate.reference_outside = _raw(reference, seating.kind, reference)
        if seating.kind == PLAIN and self._on_gpu and reference.kind == PLAIN:
            candidate.notes.append(reason("REFERENCE_NOT_CAPTURED"))
        candidate.fail(
            *reasons_of_outside(
                raw,
                assessment,
                subject.series,
                "cuda" if self._on_gpu else "cpu",
                self._turns.group.roofline.floor_ns,
            ),
            *reasons_of_idleness(seating.idle_ns, reference.idle_ns),
            *reasons_of_revealing(
                seating.reveal_ns,
                reference.reveal_ns,
                seating.entries / reference.entries,
            ),
        )
        if not assessment.resolved:
            low, high = assessment.interval_ns
            detail = f"{assessment.value_ns:.0f} ns; {low:.0f} to {high:.0f} is not excluded."
            candidate.notes.append(reason("BELOW_RESOLUTION", detail))
        candidate.measured = True

    def _name(self, candidate: Candidate | None) -> str:
        return _REFERENCE if candidate is None else f"item {candidate.item.item_id}"

    def _measurer_child(self) -> Any:
        if self._turns.referee is None:
            raise RefereeFailed("it was never started")
        return self._turns.referee.child


class NoSharing(Exception):  # noqa: N818
    """This machine has no way to share the device's memory between processes."""


def _raw(seating: Seating, kind: str, trusted: Seating) -> Raw:
    """A subject's raw times of one kind, with those of the trusted process beside them."""
    if kind == GRAPH:
        rows, gated = seating.times("rows"), seating.times("gated")
        null_rows, null_gated = trusted.times("null_rows"), trusted.times("null_gated")
        calls, gates, outputs = seating.calls, seating.singles, seating.outputs
    else:
        rows, gated, null_rows = (), seating.times("called"), ()
        null_gated, calls, gates = trusted.times("null_called"), 1, 1
        outputs = DESTINATION if seating.outputs == DESTINATION else COPIED
    raw = Raw(kind, outputs, calls, gates, rows, gated, null_rows, null_gated)
    if outputs != COPIED:
        return raw
    return replace(raw, copied=trusted.times("copied"), copied_null=trusted.times("null_called"))


def _kind_of(series: str) -> str:
    return PLAIN if series in ("called", "null_called", "copied") else GRAPH


def _shared_memory(name: str, size_bytes: int) -> int:
    """A file descriptor of shared memory whose size nobody can change any more."""
    descriptor = os.memfd_create(f"kernelindex-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size_bytes)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
