"""Typed models of what stands in a result bundle; `bundles.py` reads and checks the files."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from assets.reruns.worker.codes import State, Status


class Model(BaseModel):
    """Unknown keys are an error; instances do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


class Reason(Model):
    """A reason code of `worker/codes.py` with its sentence."""

    code: str
    text: str


class Statistics(Model):
    """Summary of one series of calls; every time in nanoseconds."""

    samples: int = Field(gt=0)
    median: int = Field(ge=0)
    p05: int
    p95: int
    mad: int
    minimum: int
    maximum: int
    mean: int
    confidence95: tuple[int, int]
    round_medians: tuple[int, ...]


class Tolerance(Model):
    """The bound that was applied, and where it came from."""

    absolute: float
    relative: float
    matched_ratio: float
    source: str


class OutputComparison(Model):
    """How one output compares with the reference."""

    name: str
    max_absolute_error: float
    max_relative_error: float
    matched_ratio: float
    nan_output: int
    nan_reference: int
    nan_both: int
    infinity_mismatch: int
    tolerance: Tolerance


class Correctness(Model):
    """The worst comparison of all kept calls."""

    max_absolute_error: float
    max_relative_error: float
    matched_ratio: float
    outputs: tuple[OutputComparison, ...]


class CallConvention(Model):
    """How the entry point was called, and what decided that."""

    style: Literal["returns", "destination"]
    arguments: Literal["positional", "keyword"]
    decided_by: Literal["field", "signature", "default"]
    detail: str


class Roofline(Model):
    """Least bytes, operations and time of the problem on this device."""

    bytes: int
    flops: int | None
    floor_ns: int | None
    how: str


class ItemOutcome(Model):
    """What came of one item."""

    item_id: str
    status: Status
    reasons: tuple[Reason, ...]
    notes: tuple[Reason, ...]
    reproduces: str | None
    definition_digest: str
    workload_digest: str
    solution_digest: str
    statistics: Statistics | None
    wall_statistics: Statistics | None
    reference_statistics: Statistics | None
    outside_ns_per_call: int | None
    speedup: float | None
    correctness: Correctness | None
    call_convention: CallConvention | None
    roofline: Roofline | None
    isolation: dict[str, str] | None
    log: str


class Calibration(Model):
    """The machine before and after; only a clean one makes evidence."""

    before: dict[str, float] | None
    after: dict[str, float] | None
    drift: dict[str, float] | None
    clean: bool
    reasons: tuple[Reason, ...]


class FileEntry(Model):
    """A file of a bundle."""

    digest: str
    size_bytes: int


class ResultDocument(Model):
    """`result.json`."""

    schema_: Literal["kernelindex-result-bundle/1"] = Field(alias="schema")
    bundle_id: str
    nonce: str
    worker_version: str
    protocol: dict[str, Any]
    seeds: tuple[int, ...]
    started_at: datetime
    finished_at: datetime
    state: State
    error: str | None
    device: dict[str, Any]
    may_become_verified: bool
    calibration: Calibration
    items: tuple[ItemOutcome, ...]
    files: dict[str, FileEntry]


class Sample(Model):
    """One line of samples.jsonl: one timed call, in nanoseconds."""

    item_id: str
    subject: Literal["candidate", "reference"]
    mode: Literal["device", "wall"]
    round: int
    index: int
    seed: int
    device_ns: int
    wall_ns: int | None
