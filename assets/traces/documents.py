"""FlashInfer-Bench documents as they come, every schema version, as typed models.

Only shapes and types are checked here; what a value means is decided in `assets.manifests`.
Field names that changed over time are aliases of the newest one. Unknown fields are kept in
`model_extra` where they are few (definitions, solutions), so that a reader can say what it did
not read, and of an evaluation, whose further values are kept beside a run. Those of workloads and
environments, which many traces share, are ignored; their raw bytes stay in the raw store.
"""

from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

# JSON numbers are doubles; whether one is an integer is decided where it is used.
Number = float
# Upstream writes non-finite numbers as bare tokens, as strings and as null.
Measured = float | str | None


class Document(BaseModel):
    """Base of all upstream documents: strict types, no coercion of strings to numbers."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, populate_by_name=True)


class OpenDocument(Document):
    """Base of documents whose unknown fields are kept."""

    model_config = ConfigDict(extra="allow")

    def unread(self) -> list[str]:
        """Fields that no model knows, e.g. `init`, `axes.*.parent`, each once."""
        found = dict.fromkeys(self.model_extra or {})
        for field, value in vars(self).items():
            many = value.values() if isinstance(value, dict) else value
            if isinstance(value, OpenDocument):
                found |= dict.fromkeys(f"{field}.{name}" for name in value.unread())
            elif isinstance(value, dict | list):
                found |= dict.fromkeys(
                    f"{field}.*.{name}"
                    for part in many
                    if isinstance(part, OpenDocument)
                    for name in part.unread()
                )
        return list(found)


class Axis(OpenDocument):
    """One axis of a definition: constant, variable, or derived by an expression."""

    type: Literal["var", "const", "expr"]
    value: Number | None = None
    expression: str | None = None
    description: str | None = None


class Tensor(OpenDocument):
    """One input or output of a definition; a null or empty shape is a scalar."""

    shape: list[str | Number] | None = None
    dtype: str
    description: str | None = None
    optional: bool | None = None


class Definition(OpenDocument):
    """An operation with its reference implementation (as text; it is never run here)."""

    name: str
    op_type: str | None = Field(default=None, validation_alias=AliasChoices("op_type", "type"))
    description: str | None = None
    tags: list[str] | None = None
    axes: dict[str, Axis]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    reference: str | None = None
    constraints: list[str] | None = None


class Source(OpenDocument):
    """One source file of a solution."""

    path: str
    content: str


class SolutionSpec(OpenDocument):
    """How a solution is built and called."""

    language: str | None = None
    languages: list[str] | None = None
    target_hardware: list[str] | None = None
    entry_point: str | None = None
    dependencies: list[str] | None = None
    destination_passing_style: bool | None = None
    binding: str | None = None


class Solution(OpenDocument):
    """An implementation of a definition."""

    name: str
    definition: str
    author: str | None = None
    description: str | None = None
    spec: SolutionSpec | None = None
    sources: list[Source] | None = None


class InputDescriptor(Document):
    """Where one input of a workload comes from: random, scalar, or a tensor file."""

    type: str = Field(validation_alias=AliasChoices("type", "format"))
    value: float | bool | None = None
    path: str | None = None
    tensor_key: str | None = None

    def parts(self) -> tuple[object, ...]:
        """All that tells one descriptor from another; 1 and true are not the same."""
        value = self.value
        is_given = "value" in self.model_fields_set
        return self.type, is_given, type(value), value, self.path, self.tensor_key


class Tolerance(Document):
    """Error bounds of one workload (SOL-ExecBench)."""

    max_atol: float | None = None
    max_rtol: float | None = None


class Workload(Document):
    """One case: bound axes and inputs."""

    uuid: str | None = None
    axes: dict[str, Number]
    inputs: dict[str, InputDescriptor] | None = None
    tolerance: Tolerance | None = None

    def parts(self) -> tuple[object, ...]:
        """All that tells one workload from another, as something that can be a key."""
        tolerance = self.tolerance
        return (
            self.uuid,
            *self.axes.items(),
            *((name, *item.parts()) for name, item in (self.inputs or {}).items()),
            tolerance and (tolerance.max_atol, tolerance.max_rtol),
        )


class Correctness(OpenDocument):
    """Errors against the reference; `extra` is free."""

    max_relative_error: Measured = None
    max_absolute_error: Measured = None
    extra: dict[str, Any] | None = None
    matched_ratio: Measured = None


class Performance(OpenDocument):
    """Times in milliseconds, as the harness printed them."""

    latency_ms: Measured = None
    reference_latency_ms: Measured = None
    speedup_factor: Measured = None


class TraceEnvironment(Document):
    """Device name and library versions."""

    hardware: str = Field(validation_alias=AliasChoices("hardware", "device"))
    libs: dict[str, str] = Field(default_factory=dict)
    hardware_id: str | None = None

    def parts(self) -> tuple[object, ...]:
        """All that tells one environment from another, as something that can be a key."""
        return self.hardware, self.hardware_id, *self.libs.items()


class Evaluation(OpenDocument):
    """The outcome of one measurement."""

    status: str
    environment: TraceEnvironment
    timestamp: str
    log: str | None = Field(default=None, validation_alias=AliasChoices("log", "error"))
    correctness: Correctness | None = None
    performance: Performance | None = None


class NotEvaluated(BaseModel):
    """The empty object that stood for "not evaluated" until 2025-09."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Trace(OpenDocument):
    """One line of a trace or workload file; a workload row has no evaluation."""

    definition: str
    workload: Workload
    solution: str | None = None
    evaluation: Evaluation | NotEvaluated | None = Field(default=None, union_mode="left_to_right")
