"""Typed models of what stands in a result bundle, each value within what a table can hold.

`result_files.py` reads the files; whether what they claim follows from the samples is the business
of `evidence/`. Unknown keys are an error, but for facts about the device: a driver may add to them.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat

from assets.reruns.worker.codes import State, Status

_FIRST_YEAR, _LAST_YEAR = 2000, 2200


def _in_utc(instant: datetime) -> datetime:
    if not _FIRST_YEAR <= instant.year <= _LAST_YEAR:
        raise ValueError(f"no time between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
# Up to here a float holds every integer, and sums of many are still far from what SQL can add.
Count = Annotated[int, Field(ge=0, le=2**53)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# Of outputs that are wrong an error may be infinite or no number at all.
Error = Annotated[float, Field(allow_inf_nan=True)]
Scalar = bool | Integer | FiniteFloat | str | None


class Model(BaseModel):
    """Unknown keys are an error, numbers are finite, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Reason(Model):
    """A reason code of `worker/codes.py` with its sentence."""

    code: str
    text: str


class Statistics(Model):
    """Summary of one series of calls; every time in nanoseconds."""

    samples: Annotated[int, Field(ge=1, le=2**53)]
    median: Count
    p05: Count
    p95: Count
    mad: Count
    minimum: Count
    maximum: Count
    mean: Count
    confidence95: tuple[Count, Count]
    round_medians: tuple[Count, ...]


class Tolerance(Model):
    """The bound that was applied, and where it came from."""

    absolute: float
    relative: float
    matched_ratio: Share
    source: str


class OutputComparison(Model):
    """How one output compares with the reference."""

    name: str
    max_absolute_error: Error
    max_relative_error: Error
    matched_ratio: Share
    nan_output: Count
    nan_reference: Count
    nan_both: Count
    infinity_mismatch: Count
    tolerance: Tolerance


class Correctness(Model):
    """The worst comparison of all kept calls."""

    max_absolute_error: Error
    max_relative_error: Error
    matched_ratio: Share
    outputs: tuple[OutputComparison, ...] = Field(min_length=1)


class CallConvention(Model):
    """How the entry point was called, and what decided that."""

    style: Literal["returns", "destination"]
    arguments: Literal["positional", "keyword"]
    decided_by: Literal["field", "signature", "default"]
    detail: str


class Roofline(Model):
    """Least bytes, operations and time of the problem on this device."""

    bytes: Count
    flops: Count | None
    floor_ns: Count | None
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
    outside_ns_per_call: Count | None
    speedup: Annotated[float, Field(gt=0)] | None
    correctness: Correctness | None
    call_convention: CallConvention | None
    roofline: Roofline | None
    isolation: dict[str, str] | None
    log: str


class MachineFigures(Model):
    """What one calibration measured."""

    launch_ns: Annotated[float, Field(gt=0)]
    copy_bytes_per_s: Annotated[float, Field(gt=0)]
    matmul_flops: Annotated[float, Field(gt=0)]
    empty_event_pair_ns: Annotated[float, Field(gt=0)]


class Calibration(Model):
    """The machine before and after; only a clean one makes evidence."""

    before: MachineFigures | None
    after: MachineFigures | None
    drift: dict[str, FiniteFloat] | None
    clean: bool
    reasons: tuple[Reason, ...]


class DeviceFacts(Model):
    """What is known of the device; a driver may say more than what is named here."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Scalar]

    kind: Literal["cuda", "cpu"]
    name: str | None = None
    driver: str | None = None
    memory_bytes: Count | None = None
    l2_bytes: Count | None = None
    power_limit_milliwatts: Count | None = None
    persistence_mode: bool | None = None
    ecc_enabled: bool | None = None
    mismatch: str | None = None


class Processor(Model):
    """The host's processor."""

    cores: Count | None
    architecture: str


class Telemetry(Model):
    """State of the GPU at one moment; a driver may say more."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Scalar]

    at: str
    throttle_reasons: Seed | None = None


class EnvironmentDocument(Model):
    """`environment.json`."""

    device: DeviceFacts
    software: dict[str, str]
    operating_system: str
    kernel_version: str
    cpu: Processor
    telemetry: tuple[Telemetry, ...]
    cpu_fallback: bool


class FileEntry(Model):
    """A file of a bundle."""

    digest: str
    size_bytes: Count


class ResultDocument(Model):
    """`result.json`."""

    schema_: Literal["kernelindex-result-bundle/1"] = Field(alias="schema")
    bundle_id: str
    nonce: str
    worker_version: str
    protocol: dict[str, Any]
    seeds: tuple[Seed, ...]
    started_at: Instant
    finished_at: Instant
    state: State
    error: str | None
    device: DeviceFacts
    may_become_verified: bool
    calibration: Calibration
    items: tuple[ItemOutcome, ...]
    files: dict[str, FileEntry]


class Sample(Model):
    """One line of samples.jsonl: one timed call, in nanoseconds."""

    item_id: str
    subject: Literal["candidate", "reference"]
    mode: Literal["device", "wall"]
    round: Count
    index: Count
    seed: Seed
    device_ns: Count
    wall_ns: Count | None
