"""The parties of a session: a subject is a running process, a candidate an item with its findings.

Pure standard library; what is done with them is in `session.py`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .codes import Status
from .convention import CallConvention
from .documents import Problem, Solution
from .job import Item, Limits, Protocol
from .processes import Answer, Child, ChildTimedOut, Nursery
from .roofline import Roofline
from .tolerance import ToleranceRule
from .verdict import Series, status_for

#: How many earlier calls' seeds are remembered, to recognize an output that belongs to them.
PREVIOUS_SEEDS = 4


@dataclass
class Subject:
    """One candidate, or the reference, on its way through a session."""

    name: str
    child: Child
    folder: Path
    timeout_s: float
    spent_s: float = 0.0
    seeds: list[int] = field(default_factory=list)
    series: Series = field(default_factory=Series)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, command: str, **values: Any) -> Answer:
        """Ask the child within what is left of this subject's time; raises `ChildFailed`."""
        left = self.timeout_s - self.spent_s
        if left <= 0:
            self.child.kill()
            raise ChildTimedOut(f"{self.timeout_s:.0f} s are used up")
        started = time.monotonic()
        try:
            return self.child.ask(command, left, **values)
        finally:
            self.spent_s += time.monotonic() - started

    def call(self, seed: int, mode: str, poisoned: bool = False) -> Answer:
        """One timed call; remembers the seed."""
        self.seeds = [*self.seeds[-PREVIOUS_SEEDS:], seed]
        return self.ask("call", seed=seed, mode=mode, poisoned=poisoned)


@dataclass
class Candidate:
    """What is known about one item; `subject` is None until its process runs."""

    item: Item
    solution: Solution | None
    convention: CallConvention | None
    log: Path
    reasons: list[dict[str, str]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    subject: Subject | None = None
    correctness: dict[str, Any] | None = None
    isolation: dict[str, str] | None = None
    outside_ns: int | None = None
    measured: bool = False

    @property
    def alive(self) -> bool:
        """Whether nothing speaks against measuring it so far."""
        return self.subject is not None and status_for(self.reasons) is Status.PASSED

    def fail(self, *found: dict[str, str]) -> None:
        """Add reasons; its process is ended when they forbid a pass."""
        self.reasons += [entry for entry in found if entry not in self.reasons]
        if self.subject is not None and status_for(self.reasons) is not Status.PASSED:
            self.subject.child.close()


@dataclass(frozen=True)
class Build:
    """A built library and its module name."""

    module: str
    library: str


@dataclass
class Group:
    """Candidates of one definition and workload, with what they have in common."""

    problem: Problem
    reference: str
    rule: ToleranceRule
    roofline: Roofline
    candidates: list[Candidate]
    builds: Mapping[str, Build]


@dataclass(frozen=True)
class Surroundings:
    """What a session needs from the run around it."""

    nursery: Nursery
    scratch: Path
    protocol: Protocol
    limits: Limits
    seeds: Sequence[int]
    settings: Mapping[str, Any]
    emit: Callable[..., None]
    observe: Callable[[], None]


@dataclass(frozen=True)
class Plan:
    """How often a subject is called, which of its device calls are kept and judged, and in which
    rounds an untimed probe stands among them."""

    samples: int
    wall_samples: int
    kept: frozenset[int]
    probed: frozenset[int]
