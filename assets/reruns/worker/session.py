"""Measure one group: all candidates of one definition and workload, beside the reference.

The referee's process judges and keeps the clock; the reference runs in a process of its own and is
measured the same way as the candidates. While one of them is measured the others stand still.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .codes import Status, reason
from .from_outside import FromOutside
from .inside import measure_inside
from .processes import ChildFailed, Stopped
from .subjects import Candidate, Group, Subject, Surroundings
from .turns import RefereeFailed, Turns
from .verdict import reasons_of_judgement, reasons_of_kept, reasons_of_timing, status_for

__all__ = ["RefereeFailed", "Session", "mark_stopped"]

_REFERENCE_CALL = {"style": "returns", "arguments": "positional", "decided_by": "field"}


class Session:
    """One group's session; `measure` leaves its findings in the group's candidates."""

    def __init__(self, around: Surroundings, group: Group) -> None:
        self._around = around
        self._group = group
        self._turns = Turns(around, group)
        self._facts: dict[str, Any] = {"aliased": [], "mutated": []}

    @property
    def reference(self) -> Subject | None:
        """The reference and what was measured of it."""
        return self._turns.reference

    def measure(self) -> None:
        """Run the protocol. Lets `Stopped` through, after which candidates hold what was found."""
        try:
            self._open_referee()
            self._open_all()
            for candidate in self._group.candidates:
                if candidate.alive:
                    self._turns.guard(candidate, self._check)
            self._around.emit("part_begins", part="inside")
            measure_inside(self._turns, self._keep)
            for candidate in self._group.candidates:
                if candidate.alive:
                    self._turns.turn(candidate, self._conclude_inside)
            self._around.emit("part_begins", part="outside")
            FromOutside(self._turns, self._facts, self._open).measure()
            for candidate in self._group.candidates:
                if candidate.alive:
                    self._turns.guard(candidate, self._verify)
        except RefereeFailed as error:
            for candidate in self._group.candidates:
                if status_for(candidate.reasons) is Status.PASSED and not candidate.measured:
                    candidate.fail(reason("REFERENCE_FAILED", str(error)))
        finally:
            for subject in self._turns.subjects():
                subject.child.close()
            self._around.nursery.sweep()

    def _open_referee(self) -> None:
        self._turns.referee = self._turns.start("referee")
        self._turns.ask_referee("open", rule=vars(self._group.rule), **self._reference_sources())
        self._facts = self._turns.ask_referee("facts", seed=self._around.seeds[0])
        if not any(spec.source == "random" for spec in self._group.problem.inputs):
            for candidate in self._group.candidates:
                candidate.notes.append(reason("INPUTS_NOT_VARIED"))
        if not self._facts["finite"]:
            for candidate in self._group.candidates:
                candidate.fail(reason("REFERENCE_NOT_FINITE"))

    def _reference_sources(self) -> dict[str, Any]:
        return {
            "problem": self._group.problem.document(),
            "convention": _REFERENCE_CALL,
            "sources": [["reference.py", self._group.reference]],
            "entry_file": "reference.py",
            "entry_function": "run",
        }

    def _open_all(self) -> None:
        waiting = [c for c in self._group.candidates if status_for(c.reasons) is Status.PASSED]
        if not waiting:
            return
        try:
            self._send_open(None)
            for candidate in waiting:
                self._turns.guard(candidate, self._send_open)
            self._receive_open(None)
        except ChildFailed as error:
            raise RefereeFailed(str(error)[-1500:]) from error
        for candidate in waiting:
            if candidate.alive:
                self._turns.guard(candidate, self._receive_open)

    def _open(self, candidate: Candidate | None) -> None:
        """Start a subject's process, again where it had one; raises `ChildFailed`."""
        former = self._turns.reference if candidate is None else candidate.subject
        if former is not None:
            former.child.close()
        self._send_open(candidate)
        self._receive_open(candidate)
        if former is not None:
            subject = self._turns.subject_of(candidate)
            subject.series, subject.rows = former.series, former.rows
            subject.spent_s += former.spent_s

    def _send_open(self, candidate: Candidate | None) -> None:
        if candidate is None:
            subject = self._turns.reference = self._turns.start("reference")
            subject.child.send("open", exact=True, **self._reference_sources())
            return
        solution, convention = candidate.solution, candidate.convention
        if solution is None or convention is None:
            return
        limits = self._around.limits
        subject = self._turns.start("candidate", candidate.log, limits.memory_bytes)
        candidate.subject = subject
        build = self._group.builds.get(candidate.item.solution.digest)
        subject.child.send(
            "open",
            problem=self._group.problem.document(),
            convention=convention.document(),
            sources=[list(part) for part in solution.sources],
            entry_file=solution.entry_file,
            entry_function=solution.entry_function,
            **(vars(build) if build else {}),
        )

    def _receive_open(self, candidate: Candidate | None) -> None:
        subject = self._turns.subject_of(candidate)
        answer = subject.child.receive(subject.timeout_s)
        if candidate is None:
            return
        subject.spent_s += answer.outside_ns / 1e9
        candidate.isolation = answer.values["isolation"]
        self._verify(candidate)

    def _check(self, candidate: Candidate) -> None:
        """Correctness on the bundle's seeds before anything is timed."""
        self._around.emit("item_started", item_id=candidate.item.item_id)
        subject = self._turns.subject_of(candidate)
        # Work that neither waits for its turn nor is waited for shows as what it is in probe_end
        # only, so that comes first; and with all seeds, since a first call, which compiles and
        # loads, may outlast the probe and prove nothing.
        for mode in ("probe_end", "probe_start"):
            for number, seed in enumerate(self._around.seeds):
                subject.call(seed, mode, poisoned=True)
                self._keep(candidate, seed, f"check-{number}-{mode}", False)
                if not candidate.alive:
                    return
        self._verify(candidate)

    def _keep(self, candidate: Candidate, seed: int, name: str, timed: bool) -> None:
        """Have the last call's outputs written out and judged."""
        subject = self._turns.subject_of(candidate)
        kept = subject.ask("keep", seed=seed, name=name).values
        reasons, notes = reasons_of_kept(kept, self._facts)
        candidate.notes += [note for note in notes if note not in candidate.notes]
        snapshot, final = _file_names(kept["snapshot"]), _file_names(kept["final"])
        judged = self._judge(subject, seed, snapshot, final)
        later: list[str] = []
        if not judged["correctness"]["right"] and not judged["late_right"]:
            # What an unfinished output holds says nothing: poison, zeros or any other memory.
            answer = subject.ask("look_again", name=name)
            later = _file_names(answer.values["final"])
            judged = self._judge(subject, seed, snapshot, later)
        candidate.note_correctness(judged["correctness"])
        for file_name in {*snapshot, *final, *later}:
            (subject.folder / file_name).unlink(missing_ok=True)
        candidate.fail(*reasons, *reasons_of_judgement(judged, timed))

    def _judge(
        self, subject: Subject, seed: int, snapshot: list[str], final: list[str]
    ) -> dict[str, Any]:
        return self._turns.ask_referee(
            "judge",
            seed=seed,
            folder=str(subject.folder),
            snapshot=snapshot,
            final=final,
            previous_seeds=subject.seeds[-2::-1],
        )

    def _verify(self, candidate: Candidate) -> None:
        replaced = self._turns.subject_of(candidate).ask("verify").values["replaced"]
        if replaced:
            candidate.fail(reason("PATCHED_RUNTIME", f"Replaced: {', '.join(replaced[:10])}."))

    def _conclude_inside(self, candidate: Candidate | None) -> None:
        """The verdict on what the process said of its own times."""
        if candidate is None:
            return
        self._verify(candidate)
        reference = self._turns.reference
        candidate.fail(
            *reasons_of_timing(
                self._turns.subject_of(candidate).series,
                reference.series if reference else None,
                self._group.roofline.floor_ns,
            )
        )


def mark_stopped(candidates: Sequence[Candidate], stopped: Stopped) -> None:
    """Say of every unfinished candidate that the run was stopped, and how far it had come."""
    code = "CANCELLED_BY_SIGNAL" if stopped.signal_number else "DEADLINE_REACHED"
    unfinished = [
        candidate
        for candidate in candidates
        if not candidate.measured and status_for(candidate.reasons) is Status.PASSED
    ]
    done = f"{len(candidates) - len(unfinished)} of {len(candidates)} items were finished"
    for candidate in unfinished:
        how = "this one was being measured" if candidate.subject else "this one had not begun"
        candidate.fail(reason(code, f"{done}; {how}."))


def _file_names(paths: Sequence[Any]) -> list[str]:
    return [Path(str(path)).name for path in paths]
