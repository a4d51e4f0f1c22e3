"""Measure one group: all candidates of one definition and workload, beside the reference.

The reference runs in the referee's process and is measured the same way. Candidates take turns
in rounds of random order; while one is measured the others are stopped.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .codes import Status, reason
from .processes import ChildFailed, ChildRefused, ChildTampered, Stopped
from .statistics import median, share
from .subjects import Candidate, Group, Plan, Subject, Surroundings
from .verdict import (
    OUTSIDE_ALLOWANCE_NS,
    longest_row,
    reason_of_failure,
    reasons_of_judgement,
    reasons_of_kept,
    reasons_of_timing,
    status_for,
)

LEAST_SAMPLES = 20
MAX_NS = 2**53
ROW_NS = 30_000_000
OUTSIDE_ROWS = 3
OUTSIDE_ATTEMPTS = 5
PROBED_ROUNDS = 3
_SETTLE_S = 0.02
_random = secrets.SystemRandom()


class Session:
    """One group's session; `measure` leaves its findings in the group's candidates."""

    def __init__(self, around: Surroundings, group: Group) -> None:
        self._around = around
        self._group = group
        self.referee: Subject | None = None
        self._facts: dict[str, Any] = {"aliased": [], "mutated": []}
        self._turn_of: Subject | None = None

    def measure(self) -> None:
        """Run the protocol. Lets `Stopped` through, after which candidates hold what was found."""
        try:
            self._open_referee()
            self._open_candidates()
            for candidate in self._group.candidates:
                if candidate.alive:
                    self._guard(candidate, self._check)
            self._rounds()
            for candidate in self._group.candidates:
                if candidate.alive:
                    self._turn(candidate, self._conclude)
        except RefereeFailed as error:
            for candidate in self._group.candidates:
                if status_for(candidate.reasons) is Status.PASSED and not candidate.measured:
                    candidate.fail(reason("REFERENCE_FAILED", str(error)))
        finally:
            for subject in self._subjects():
                subject.child.close()
            self._around.nursery.sweep()

    def _subjects(self) -> list[Subject]:
        found = [candidate.subject for candidate in self._group.candidates]
        return [subject for subject in [*found, self.referee] if subject is not None]

    def _open_referee(self) -> None:
        folder = self._folder("referee")
        child = self._around.nursery.start(
            folder / "log.txt", {**self._around.settings, "folder": str(folder)}
        )
        self.referee = Subject("reference", child, folder, self._around.limits.per_run_timeout_s)
        self._ask_referee(
            "open",
            problem=self._group.problem.document(),
            convention={"style": "returns", "arguments": "positional", "decided_by": "field"},
            rule=vars(self._group.rule),
            sources=[["reference.py", self._group.reference]],
            entry_file="reference.py",
            entry_function="run",
        )
        self._facts = self._ask_referee("facts", seed=self._around.seeds[0])
        if not self._facts["finite"]:
            for candidate in self._group.candidates:
                candidate.fail(reason("REFERENCE_NOT_FINITE"))

    def _ask_referee(self, command: str, **values: Any) -> dict[str, Any]:
        if self.referee is None:
            raise RefereeFailed("it was never started")
        self.referee.spent_s = 0.0  # its time is bounded per request, not per item
        self.referee.child.resume()
        try:
            return self.referee.ask(command, **values).values
        except ChildRefused as error:
            if error.kind == "HARNESS_TAMPERING":
                raise ChildTampered(error.detail) from error
            raise RefereeFailed(str(error)[-1500:]) from error
        except ChildFailed as error:
            raise RefereeFailed(str(error)[-1500:]) from error
        finally:
            if self._turn_of not in (None, self.referee):
                self.referee.child.pause()

    def _open_candidates(self) -> None:
        waiting = [c for c in self._group.candidates if status_for(c.reasons) is Status.PASSED]
        for candidate in waiting:
            self._guard(candidate, self._send_open)
        for candidate in waiting:
            if candidate.alive:
                self._guard(candidate, self._receive_open)

    def _send_open(self, candidate: Candidate) -> None:
        solution, convention = candidate.solution, candidate.convention
        if solution is None or convention is None:
            return
        folder = self._folder(candidate.item.item_id)
        limits = self._around.limits
        child = self._around.nursery.start(
            candidate.log,
            {**self._around.settings, "folder": str(folder)},
            limits.memory_bytes,
        )
        candidate.subject = Subject("candidate", child, folder, limits.per_run_timeout_s)
        build = self._group.builds.get(candidate.item.solution.digest)
        child.send(
            "open",
            problem=self._group.problem.document(),
            convention=convention.document(),
            sources=[list(part) for part in solution.sources],
            entry_file=solution.entry_file,
            entry_function=solution.entry_function,
            **(vars(build) if build else {}),
        )

    def _receive_open(self, candidate: Candidate) -> None:
        subject = _subject(candidate)
        answer = subject.child.receive(subject.timeout_s)
        subject.spent_s += answer.outside_ns / 1e9
        candidate.isolation = answer.values["isolation"]
        if not answer.values["varied"]:
            candidate.notes.append(reason("INPUTS_NOT_VARIED"))
        self._verify(candidate)

    def _check(self, candidate: Candidate) -> None:
        """Correctness on the bundle's seeds before anything is timed."""
        self._around.emit("item_started", item_id=candidate.item.item_id)
        subject = _subject(candidate)
        # Work that neither waits for its turn nor is waited for shows as what it is in probe_end
        # only, so that comes first; and with all seeds, since a first call, which compiles and
        # loads, may outlast the probe and prove nothing.
        for mode in ("probe_end", "probe_start"):
            for number, seed in enumerate(self._around.seeds):
                subject.call(seed, mode, poisoned=True)
                self._keep(candidate, seed, f"check-{number}-{mode}", timed=False)
                if not candidate.alive:
                    return
        self._verify(candidate)

    def _keep(self, candidate: Candidate, seed: int, name: str, timed: bool) -> None:
        """Have the last call's outputs written out and judged."""
        subject = _subject(candidate)
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
        candidate.correctness = _worse(candidate.correctness, judged["correctness"])
        for file_name in {*snapshot, *final, *later}:
            (subject.folder / file_name).unlink(missing_ok=True)
        candidate.fail(*reasons, *reasons_of_judgement(judged, timed))

    def _judge(
        self, subject: Subject, seed: int, snapshot: list[str], final: list[str]
    ) -> dict[str, Any]:
        return self._ask_referee(
            "judge",
            seed=seed,
            folder=str(subject.folder),
            snapshot=snapshot,
            final=final,
            previous_seeds=subject.seeds[-2::-1],
        )

    def _verify(self, candidate: Candidate) -> None:
        replaced = _subject(candidate).ask("verify").values["replaced"]
        if replaced:
            candidate.fail(reason("PATCHED_RUNTIME", f"Replaced: {', '.join(replaced[:10])}."))

    def _rounds(self) -> None:
        """Interleaved rounds of device and wall calls over candidates and reference."""
        candidates = [candidate for candidate in self._group.candidates if candidate.alive]
        if not candidates or self.referee is None:
            return
        protocol = self._around.protocol
        plans: dict[int, Plan] = {}
        for candidate in [*candidates, None]:
            self._turn(candidate, lambda c: plans.__setitem__(id(c), self._plan(c)))
        for number in range(protocol.rounds):
            order: list[Candidate | None] = [*candidates, None]
            _random.shuffle(order)
            for candidate in order:
                if candidate is None or candidate.alive:
                    self._turn(candidate, lambda c: self._round(c, plans[id(c)], number))  # noqa: B023
            self._around.observe()

    def _turn(
        self, candidate: Candidate | None, action: "Callable[[Candidate | None], None]"
    ) -> None:
        """Let one subject run alone; None stands for the reference."""
        subject = self.referee if candidate is None else candidate.subject
        if subject is None:
            return
        self._turn_of = subject
        for other in self._subjects():
            if other is not subject:
                other.child.pause()
        try:
            if candidate is None:
                try:
                    action(None)
                except ChildFailed as error:
                    raise RefereeFailed(str(error)[-1500:]) from error
            else:
                self._guard(candidate, action)
        finally:
            self._turn_of = None
            for other in self._subjects():
                other.child.resume()

    def _plan(self, candidate: Candidate | None) -> "Plan":
        """Warm up by time, and decide how many samples the subject's budget allows."""
        protocol = self._around.protocol
        subject = self.referee if candidate is None else _subject(candidate)
        assert subject is not None
        budget_s = protocol.candidate_budget_s
        if candidate is None:
            budget_s = protocol.reference_budget_s
            subject.spent_s = 0.0
        seed = _fresh_seed()
        answer = subject.ask("warm", seed=seed, seconds=protocol.warmup_s, least=3)
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

    def _round(self, candidate: Candidate | None, plan: "Plan", number: int) -> None:
        subject = self.referee if candidate is None else _subject(candidate)
        assert subject is not None
        if candidate is None:
            subject.spent_s = 0.0
        rounds = self._around.protocol.rounds
        subject.ask("place", seed=_fresh_seed())
        subject.ask("warm", seed=_fresh_seed(), seconds=_SETTLE_S, least=2)
        own = share(plan.samples, rounds, number)
        probed = _random.choice(own) if candidate and own and number in plan.probed else None
        for index in own:
            if candidate is not None and index == probed:
                self._probe(candidate, number)
                if not candidate.alive:
                    return
            seed = _fresh_seed()
            values = subject.call(seed, "device").values
            self._record(subject, "device", number, index, seed, values)
            if candidate is not None and index in plan.kept:
                self._keep(candidate, seed, f"timed-{index}", timed=True)
                if not candidate.alive:
                    return
        for index in share(plan.wall_samples, rounds, number):
            seed = _fresh_seed()
            self._record(subject, "wall", number, index, seed, subject.call(seed, "wall").values)

    def _probe(self, candidate: Candidate, number: int) -> None:
        """An untimed call between timed ones, judged by what was ready in stream order.

        Behind the long runway of this probe shows both what starts early and what ends late.
        """
        seed = _fresh_seed()
        _subject(candidate).call(seed, "probe_start", poisoned=True)
        self._keep(candidate, seed, f"probe-{number}", timed=True)

    def _record(
        self,
        subject: Subject,
        mode: str,
        number: int,
        index: int,
        seed: int,
        values: Mapping[str, Any],
    ) -> None:
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

    def _conclude(self, candidate: Candidate | None) -> None:
        """A row of calls timed from outside, a last check, and the verdict on the times."""
        if candidate is None:
            return  # the reference is on nobody's trial
        subject = _subject(candidate)
        series = subject.series
        usual = max(median(series.device_values()), median(series.wall_values()), 1)
        count = max(5, min(1000, ROW_NS // usual))
        # A CPU shared with other processes makes any row long: there, only gross lies are seen.
        allowance_ns = OUTSIDE_ALLOWANCE_NS[str(self._around.settings["device"])]
        singles, rows = [], []
        for _ in range(OUTSIDE_ATTEMPTS):
            single, row, seed = self._time_from_outside(subject, count)
            singles.append(single)
            rows.append(row)
            candidate.outside_ns = max(0, (min(rows) - min(singles)) // (count - 1))
            if candidate.outside_ns <= longest_row(series, allowance_ns):
                break
        self._keep(candidate, seed, "row", timed=True)
        if candidate.alive:
            self._verify(candidate)
        reference = self.referee.series if self.referee else None
        floor_ns = self._group.roofline.floor_ns
        found = reasons_of_timing(series, reference, candidate.outside_ns, allowance_ns, floor_ns)
        candidate.fail(*found)
        candidate.measured = True

    def _time_from_outside(self, subject: Subject, count: int) -> tuple[int, int, int]:
        """Least ns of one call and of a row of `count`, and the last row's seed.

        Noise only adds, and a process cannot make a row shorter than its work: so the least.
        """
        singles, rows, seed = [], [], 0
        for _ in range(OUTSIDE_ROWS):
            singles.append(subject.ask("repeat", seed=_fresh_seed(), count=1).outside_ns)
            seed = _fresh_seed()
            rows.append(subject.ask("repeat", seed=seed, count=count).outside_ns)
            subject.seeds.append(seed)
        return min(singles), min(rows), seed

    def _guard(self, candidate: Candidate, action: Callable[[Candidate], None]) -> None:
        """Turn a candidate's failure into its reason; the others go on."""
        try:
            action(candidate)
        except ChildFailed as error:
            candidate.fail(reason_of_failure(error))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Answers of the harness always have their parts; only a forged one does not.
            candidate.fail(reason("HARNESS_TAMPERING", f"An answer is malformed: {error!r}."))

    def _folder(self, name: str) -> Path:
        folder = self._around.scratch / f"{name}-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        return folder


class RefereeFailed(Exception):  # noqa: N818
    """The reference cannot be run for this group."""


def mark_stopped(candidates: Sequence[Candidate], stopped: Stopped) -> None:
    """Say of every unfinished candidate that the run was stopped."""
    code = "CANCELLED_BY_SIGNAL" if stopped.signal_number else "DEADLINE_REACHED"
    for candidate in candidates:
        if not candidate.measured and status_for(candidate.reasons) is Status.PASSED:
            candidate.fail(reason(code))


def _subject(candidate: Candidate) -> Subject:
    if candidate.subject is None:
        raise ValueError(f"{candidate.item.item_id} has no process")
    return candidate.subject


def _fresh_seed() -> int:
    return _random.randrange(2**62)


def _file_names(paths: Sequence[Any]) -> list[str]:
    return [Path(str(path)).name for path in paths]


def _worse(left: dict[str, Any] | None, right: dict[str, Any]) -> dict[str, Any]:
    """The one of two comparisons that speaks more against the candidate."""
    if left is None:
        return right
    key = ("right", "matched_ratio")
    if [right[k] for k in key] < [left[k] for k in key]:
        return right
    if right["right"] == left["right"] and right["max_absolute_error"] > left["max_absolute_error"]:
        return right
    return left
