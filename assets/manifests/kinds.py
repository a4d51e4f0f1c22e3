"""The manifest kinds of KernelIndex v1alpha1, as strict models.

One model per kind's spec, with the limits of the published JSON Schemas. A spec is dumped with
camelCase names and without absent fields; that dump is what identity is computed from. Set-like
lists are deduplicated and sorted by code unit when a model is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel

from assets.manifests.canonical import API_VERSION, canonical_json, identity_json, sha256_digest

_SAFE = 2**53 - 1

Token = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=100)]
ManifestName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=200)]
DigestString = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
GitCommit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
HttpsUrl = Annotated[str, StringConstraints(pattern=r"^https://", max_length=2000)]
SafeInteger = Annotated[int, Field(ge=-_SAFE, le=_SAFE)]
NonNegativeInteger = Annotated[int, Field(ge=0, le=_SAFE)]
PositiveInteger = Annotated[int, Field(gt=0, le=_SAFE)]
FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]
ErrorBound = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1)]
Text100 = Annotated[str, StringConstraints(max_length=100)]
Text200 = Annotated[str, StringConstraints(max_length=200)]
Text500 = Annotated[str, StringConstraints(max_length=500)]


def _as_set(values: list[str]) -> list[str]:
    return sorted(set(values), key=lambda value: value.encode("utf-16-be", "surrogatepass"))


TokenSet = Annotated[list[Token], AfterValidator(_as_set)]
TextSet = Annotated[list[Text100], AfterValidator(_as_set)]


class Part(BaseModel):
    """Base of every piece of a manifest: camelCase outside, no unknown fields."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class ArtifactReference(Part):
    """An immutable piece of content."""

    uri: Annotated[str, StringConstraints(max_length=2000)]
    digest: DigestString


class Author(Part):
    """A name that upstream gives."""

    name: Text200


class SourceReference(Part):
    """Where an object was found."""

    url: HttpsUrl


class Metadata(Part):
    """Editorial part of a manifest; never in a digest."""

    name: ManifestName
    title: Text200 | None = None
    description: Annotated[str, StringConstraints(max_length=2000)] | None = None
    labels: dict[Token, Text200] | None = None
    authors: list[Author] | None = None
    source_refs: list[SourceReference] | None = None


class ProjectHost(Part):
    """Where a project lives."""

    kind: Literal["github", "huggingface", "gitlab", "other"]
    id: Text200


class SoftwareProject(Part):
    """Who makes implementations."""

    name: Text200
    kind: Literal["library", "individual", "vendor"] | None = None
    repository: HttpsUrl | None = None
    host: ProjectHost | None = None


class AxisSpec(Part):
    """One axis of an operation."""

    role: Literal["variable", "constant", "derived"]
    type: Literal["integer"] = "integer"
    value: SafeInteger | None = None
    expression: (
        Annotated[str, StringConstraints(max_length=200, pattern=r"^[a-z0-9_+\-*%/() ]+$")] | None
    ) = None

    @model_validator(mode="after")
    def _complete(self) -> "AxisSpec":
        if self.role == "constant" and self.value is None:
            raise ValueError("a constant axis needs a value")
        if self.role == "derived" and self.expression is None:
            raise ValueError("a derived axis needs an expression")
        return self


class TensorSpec(Part):
    """Shape by axis name or integer, and dtype token."""

    shape: Annotated[list[NonNegativeInteger | Token], Field(min_length=1)]
    dtype: Token


class ScalarSpec(Part):
    """A scalar argument."""

    dtype: Token


class Argument(Part):
    """An input or output: exactly one of tensor and scalar."""

    name: Token
    tensor: TensorSpec | None = None
    scalar: ScalarSpec | None = None


class Semantics(Part):
    """What an operation does to its inputs."""

    mutation: Literal["none", "in_place", "destination"] = "none"
    determinism: Literal["deterministic", "nondeterministic", "unspecified"] = "unspecified"


class Reference(Part):
    """The language of the reference implementation."""

    language: Token = "python"


class OperationSpec(Part):
    """What is computed."""

    family: Slug
    axes: dict[Token, AxisSpec]
    inputs: Annotated[list[Argument], Field(min_length=1)]
    outputs: Annotated[list[Argument], Field(min_length=1)]
    semantics: Semantics = Semantics()
    reference: Reference | None = None


class TensorData(Part):
    """How the contents of a tensor come about."""

    generator: Token


class WorkloadTensor(Part):
    """A tensor with bound shape."""

    shape: Annotated[list[NonNegativeInteger], Field(min_length=1)]
    dtype: Token
    data: TensorData | None = None


class WorkloadScalar(Part):
    """A scalar with its value."""

    dtype: Token
    value: FiniteNumber


class WorkloadCorrectness(Part):
    """How outputs are compared, and within which bounds."""

    comparator: Token
    max_absolute_error: ErrorBound | None = None
    max_relative_error: ErrorBound | None = None
    required_matched_ratio: Ratio | None = None


class WorkloadCase(Part):
    """One exact case of an operation."""

    operation_spec_digest: DigestString
    axes: dict[Token, SafeInteger]
    tensors: dict[Token, WorkloadTensor]
    scalars: dict[Token, WorkloadScalar] | None = None
    correctness: WorkloadCorrectness


class ProjectRevision(Part):
    """Which state of a project an implementation is from."""

    repository: HttpsUrl | None = None
    commit: GitCommit


class OperationReference(Part):
    """The operation that is implemented."""

    spec_digest: DigestString


class Callable(Part):
    """How an implementation is entered."""

    language: Token
    path: Text500 | None = None
    symbol: Text200 | None = None


class Support(Part):
    """What an implementation was made for."""

    hardware_architectures: TokenSet
    products_tested: TextSet
    dtypes: TokenSet


class SourceContent(Part):
    """The kept main source file."""

    content_digest: DigestString
    file_name: Text200
    size_bytes: PositiveInteger


class Licensing(Part):
    """Declared and concluded licence expressions."""

    declared: Text200 | None = None
    concluded: Text200 | None = None


class ImplementationRevision(Part):
    """One state of one implementation of one operation."""

    project_revision: ProjectRevision
    operation: OperationReference
    callable: Callable
    support: Support
    source: SourceContent | None = None
    licensing: Licensing


class Harness(Part):
    """The program that measured."""

    name: Text200
    version: Text100 | None = None
    repository: HttpsUrl | None = None


class Measurement(Part):
    """How time was taken."""

    timer: Token
    synchronization: Token | None = None
    compile_included: bool | None = None
    setup_included: bool | None = None
    warmup_duration: NonNegativeInteger | None = None
    samples: PositiveInteger | None = None
    input_regeneration: Token | None = None
    outlier_policy: Text500 | None = None
    primary_statistic: Token


class ProtocolCorrectness(Part):
    """What outputs are compared with."""

    reference: Text500
    comparator: Token


class DevicePolicy(Part):
    """What is required of the device's settings."""

    clocks_locked: bool | None = None


class Comparability(Part):
    """The family of protocols that this one belongs to."""

    family: Token
    notes: Annotated[str, StringConstraints(max_length=1000)] | None = None


class BenchmarkProtocol(Part):
    """How runs of a kind are measured."""

    harness: Harness
    measurement: Measurement
    correctness: ProtocolCorrectness | None = None
    device_policy: DevicePolicy | None = None
    comparability: Comparability | None = None


class EnvironmentHardware(Part):
    """The device."""

    vendor: Token
    product: Text200
    architecture: Token
    memory_bytes: PositiveInteger | None = None
    count: PositiveInteger | None = None


class Framework(Part):
    """The tensor library."""

    name: Token
    version: Text100


class EnvironmentSoftware(Part):
    """The software that matters for a comparison."""

    operating_system: Text200 | None = None
    kernel: Text200 | None = None
    driver: Text100 | None = None
    cuda_toolkit: Text100 | None = None
    compiler: Text200 | None = None
    framework: Framework | None = None
    libraries: dict[Token, Text100] | None = None


class EnvironmentSettings(Part):
    """Device settings as they were read."""

    clocks_locked: bool | None = None
    power_limit_watts: Annotated[float, Field(gt=0)] | None = None
    persistence_mode: bool | None = None
    ecc_enabled: bool | None = None


class ExecutionEnvironment(Part):
    """On what a run was made."""

    hardware: EnvironmentHardware
    software: EnvironmentSoftware
    settings: EnvironmentSettings | None = None


RunStatus = Literal[
    "passed",
    "incorrect_shape",
    "incorrect_dtype",
    "incorrect_numerical",
    "compile_error",
    "runtime_error",
    "timeout",
    "resource_exceeded",
    "invalid_reference",
    "policy_violation",
    "suspected_reward_hack",
    "incomplete_evidence",
    "revoked",
]


class RunCorrectness(Part):
    """Errors that were found."""

    comparator: Token
    maximum_absolute_error: ErrorBound | None = None
    maximum_relative_error: ErrorBound | None = None
    matched_ratio: Ratio | None = None


class LatencyStatistics(Part):
    """Latencies in integer nanoseconds."""

    median: NonNegativeInteger | None = None
    mean: NonNegativeInteger | None = None
    p05: NonNegativeInteger | None = None
    p95: NonNegativeInteger | None = None
    minimum: NonNegativeInteger | None = None
    maximum: NonNegativeInteger | None = None
    mad: NonNegativeInteger | None = None
    confidence95: tuple[NonNegativeInteger, NonNegativeInteger] | None = None


class Timing(Part):
    """The timing result."""

    primary_statistic: Token
    samples: PositiveInteger | None = None
    latency_ns: LatencyStatistics
    raw_samples: ArtifactReference | None = None


class RunMeasurement(Part):
    """A named value beside the timing."""

    metric: Token
    unit: Token
    statistic: Token
    value: FiniteNumber
    sample_count: PositiveInteger | None = None


class SourceNative(Part):
    """The values as the source gave them."""

    source: Slug
    benchmark: Text200 | None = None
    external_id: Text500 | None = None
    metrics: dict[Token, FiniteNumber] | None = None


class HarnessRevision(Part):
    """The exact program."""

    repository: HttpsUrl
    commit: GitCommit


class Evidence(Part):
    """What backs a run."""

    logs: ArtifactReference | None = None
    raw_samples: ArtifactReference | None = None
    harness: HarnessRevision | None = None


class BenchmarkRun(Part):
    """One measured outcome."""

    implementation_digest: DigestString
    workload_digest: DigestString
    protocol_digest: DigestString
    environment_digest: DigestString
    status: RunStatus
    correctness: RunCorrectness | None = None
    timing: Timing | None = None
    measurements: list[RunMeasurement] | None = None
    source_native: SourceNative | None = None
    evidence: Evidence | None = None
    observed_at: Annotated[
        str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
    ]


SPECS: dict[str, type[Part]] = {
    model.__name__: model
    for model in (
        SoftwareProject,
        OperationSpec,
        WorkloadCase,
        ImplementationRevision,
        BenchmarkProtocol,
        ExecutionEnvironment,
        BenchmarkRun,
    )
}


@dataclass(frozen=True)
class Manifest:
    """A validated manifest with its identity."""

    kind: str
    metadata: dict[str, Any]
    spec: dict[str, Any]

    @classmethod
    def of(cls, spec: Part, metadata: Metadata) -> "Manifest":
        """The manifest of a spec model; the kind is the model's name."""
        return cls(type(spec).__name__, dump(metadata), dump(spec))

    @cached_property
    def identity_json(self) -> str:
        """Canonical JSON of `{apiVersion, kind, spec}`."""
        return identity_json(self.kind, self.spec)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity body."""
        return sha256_digest(self.identity_json)

    @cached_property
    def metadata_json(self) -> str:
        """Canonical JSON of the editorial part."""
        return canonical_json(self.metadata)

    def document(self) -> dict[str, Any]:
        """The whole manifest as published."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": self.metadata,
            "spec": self.spec,
        }


def dump(part: Part) -> dict[str, Any]:
    """camelCase fields without absent ones."""
    return part.model_dump(by_alias=True, exclude_none=True)


def validate_document(document: Mapping[str, Any]) -> Manifest:
    """A manifest from its published document.

    Raises:
        pydantic.ValidationError: for a spec or metadata that the kind does not allow.
        ValueError: for an unknown kind or API version.
    """
    kind = document.get("kind")
    if document.get("apiVersion") != API_VERSION or kind not in SPECS:
        raise ValueError(f"no {API_VERSION} manifest kind: {kind!r}")
    spec = SPECS[kind].model_validate(document["spec"])
    return Manifest.of(spec, Metadata.model_validate(document["metadata"]))
