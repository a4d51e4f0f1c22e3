"""What a row of a catalog export must hold so that it can be verified.

The fields that verification reads, with the types that it takes for granted; whatever else a row
has is left alone. Names are those of the public index's tables and manifests.
"""

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from assets.manifests.canonical import canonical_json
from assets.traces.untrusted_text import visible_line

_LARGEST = 2**63 - 1
_HALF_A_PAIR = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD][89abAB]")
_MOST_MESSAGE_CHARACTERS = 300


def _storable(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("has half of a surrogate pair") from None
    return text


def _instant(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is no time") from None
    if not 1 < moment.year < 9999:
        raise ValueError("is no time that can be compared")
    return text


Text = Annotated[str, AfterValidator(_storable)]
Instant = Annotated[Text, AfterValidator(_instant)]
Size = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
Value = (
    Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
    | Annotated[float, Field(gt=-_LARGEST, lt=_LARGEST, allow_inf_nan=False)]
)


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _Axis(_Row):
    role: Text
    value: Size | None = None


class _OperationSpec(_Row):
    axes: dict[Text, _Axis]


class _OperationManifest(_Row):
    kind: Text
    spec: _OperationSpec


class _Operation(_Row):
    id: Text
    semanticDigest: Text
    name: Text
    family: Text | None
    manifest: _OperationManifest


class _WorkloadSpec(_Row):
    axes: dict[Text, Size] = {}  # a suite has none of its own
    operationSpecDigest: Text
    correctness: Any


class _Titled(_Row):
    title: Text | None = None


class _WorkloadManifest(_Row):
    kind: Text
    metadata: _Titled
    spec: _WorkloadSpec


class _Workload(_Row):
    id: Text
    operationId: Text
    workloadDigest: Text
    manifest: _WorkloadManifest


class _AnyManifest(_Row):
    kind: Text
    spec: dict[Text, Any]


class _Implementation(_Row):
    id: Text
    operationId: Text
    implementationDigest: Text
    title: Text
    manifest: _AnyManifest


class _Named(_Row):
    name: Text


class _Metrics(_Row):
    reference_latency_ms: Value | None = None


class _SourceNative(_Row):
    source: Text | None = None
    benchmark: Any = None
    metrics: _Metrics = _Metrics()


class _Timing(_Row):
    latencyNs: dict[Text, Value | list[Value]] = {}  # an interval has two ends


class _Correctness(_Row):
    maximumRelativeError: Value | None = None


class _RunSpec(_Row):
    implementationDigest: Text
    workloadDigest: Text
    timing: _Timing = _Timing()
    correctness: _Correctness = _Correctness()
    sourceNative: _SourceNative = _SourceNative()


class _Run(_Row):
    kind: Text
    metadata: _Named
    spec: _RunSpec


class _Measurement(_Row):
    primaryStatistic: Text


class _ProtocolSpec(_Row):
    measurement: _Measurement


class _Protocol(_Row):
    kind: Text
    spec: _ProtocolSpec


class _Hardware(_Row):
    product: Text
    architecture: Text


class _EnvironmentSpec(_Row):
    hardware: _Hardware


class _Environment(_Row):
    kind: Text
    spec: _EnvironmentSpec


class _RunManifest(_Row):
    run: _Run
    protocol: _Protocol
    environment: _Environment


class _BenchmarkRun(_Row):
    id: Text
    runDigest: Text
    implementationId: Text
    workloadId: Text
    status: Text
    observedAt: Instant
    publishedAt: Instant
    protocolKey: Text
    environmentKey: Text
    correctnessKey: Text
    comparisonKey: Text
    primaryMetric: Text | None
    primaryStatistic: Text | None
    primaryValue: Value | None
    primaryUnit: Text | None
    uncertaintyLow: Value | None = None
    uncertaintyHigh: Value | None = None
    sourceNative: bool
    sourceAvailable: bool
    hasRawEvidence: bool
    reproducedByKernelindex: bool
    independentReplicationCount: Annotated[int, Field(ge=0, le=_LARGEST)]
    retractedAt: Any = None
    supersedesId: Text | None = None
    manifest: _RunManifest


class _RecordEvent(_Row):
    comparisonKey: Text
    runId: Text
    previousRunId: Text | None
    cause: Text | None
    at: Instant


CHECKED: dict[str, TypeAdapter[Any]] = {
    "operations": TypeAdapter(_Operation),
    "workloads": TypeAdapter(_Workload),
    "implementations": TypeAdapter(_Implementation),
    "benchmark_runs": TypeAdapter(_BenchmarkRun),
    "record_events": TypeAdapter(_RecordEvent),
}


def row_problem(table: str, row: dict[str, Any]) -> str | None:
    """Why a row of a checked table cannot be verified, in one line; None if it can."""
    try:
        CHECKED[table].validate_python(row)
        if "manifest" in row and _HALF_A_PAIR.search(canonical_json(row["manifest"])):
            return f"a row of {table}: manifest has half of a surrogate pair"
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        what = "is missing" if first["type"] == "missing" else first["msg"].lower()
        return _short(f"a row of {table}: {place} {what.removeprefix('value error, ')}")
    except (ValueError, OverflowError, RecursionError) as error:
        return _short(f"a row of {table}: manifest cannot be hashed ({error})")
    return None


def _short(text: str) -> str:
    return visible_line(text[:_MOST_MESSAGE_CHARACTERS])
