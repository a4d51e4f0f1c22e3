"""What rules look at: a session with its job, and one item of it with its samples and documents."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from assets.reruns.result_documents import EnvironmentDocument, ItemOutcome, ResultDocument, Sample
from assets.reruns.worker.documents import DocumentError, Problem, problem_of
from assets.reruns.worker.job import Item, JobBundle
from assets.reruns.worker.roofline import Product, product_named
from assets.reruns.worker.tolerance import NOT_COMPARABLE
from assets.reruns.worker.verdict import Series

RESULT = "result.json"

#: What documents that the worker cannot work with raise, there and here.
UNUSABLE = (DocumentError, KeyError, TypeError, AttributeError, ValueError, RecursionError)


@dataclass(frozen=True)
class Fault:
    """A claim that does not follow: the place that makes it, and what is wrong with it."""

    path: str
    message: str
    file: str = RESULT


@dataclass(frozen=True)
class ItemClaims:
    """One item: what was asked, what is claimed, and the raw samples."""

    index: int
    item: Item
    outcome: ItemOutcome
    samples: tuple[Sample, ...]
    definition: Any
    workload: Any
    solution: Any

    def at(self, field: str) -> str:
        """JSON path of a field of the outcome."""
        return f"items[{self.index}].{field}"

    @property
    def measured(self) -> bool:
        """Whether it is said to have been timed to its end."""
        return self.outcome.statistics is not None

    def of(self, subject: str, mode: str) -> list[Sample]:
        """The samples of one series in the order of the file."""
        return [s for s in self.samples if (s.subject, s.mode) == (subject, mode)]

    @cached_property
    def problem(self) -> Problem | None:
        """What was to be computed; None where the worker cannot work with the documents."""
        tensors = {tensor.name: tensor.path for tensor in self.item.tensors}
        try:
            problem = problem_of(self.definition, self.workload, tensors)
        except UNUSABLE:
            return None
        return None if problem.op_type.split("_")[0] in NOT_COMPARABLE else problem

    def series(self, subject: str) -> Series:
        """The raw times of a subject, by round."""
        series = Series()
        for sample in self.of(subject, "device"):
            series.device.setdefault(sample.round, []).append(sample.device_ns)
        for sample in self.of(subject, "wall"):
            wall_ns = sample.wall_ns or 0
            series.wall.setdefault(sample.round, []).append(wall_ns)
            series.event_gaps.append(wall_ns - sample.device_ns)
        return series


@dataclass(frozen=True)
class SessionClaims:
    """A whole result bundle beside the job bundle that it answers."""

    bundle: JobBundle
    result: ResultDocument
    environment: EnvironmentDocument
    traces: tuple[dict[str, Any], ...]
    items: tuple[ItemClaims, ...]

    @property
    def product(self) -> Product | None:
        """The stored peaks of the recorded GPU."""
        return product_named(self.environment.device.name or "")


SessionRule = Callable[[SessionClaims], Iterator[Fault]]
ItemRule = Callable[[SessionClaims, ItemClaims], Iterator[Fault]]
