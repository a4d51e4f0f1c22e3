"""Traces become BenchmarkRun manifests with their keys."""

import json
import math
from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec import Struct

from assets.manifests import names
from assets.manifests.canonical import (
    API_VERSION,
    canonical_number,
    canonical_string,
    sha256_digest,
    utf8,
)
from assets.manifests.environments import Environment
from assets.manifests.implementations import Implementation
from assets.manifests.instants import InstantError, instant_and_text
from assets.manifests.kinds import (
    BenchmarkProtocol,
    Comparability,
    Harness,
    Manifest,
    Measurement,
    Metadata,
    ProtocolCorrectness,
)
from assets.manifests.operations import Operation
from assets.manifests.quarantine import Reason, RejectionError
from assets.manifests.workloads import COMPARATOR, Case
from assets.traces.documents import (
    Correctness,
    Evaluation,
    Measured,
    OpenDocument,
    Performance,
    Trace,
)
from assets.traces.outlines import (
    CorrectnessOutline,
    EvaluationOutline,
    PerformanceOutline,
    TraceOutline,
)

NO_METRIC_KEY = "none"
_MAX_LATENCY_NS = 2**53 - 1
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "inf": math.inf}
_TITLE_LENGTH = 200


def metric_key(metric: str, statistic: str, unit: str) -> str:
    """What a value is, for comparison."""
    return f"{metric}:{statistic}:{unit}"


LATENCY_METRIC_KEY = metric_key("latency", "mean", "ns")


@lru_cache(maxsize=1)
def trace_protocol() -> Manifest:
    """The protocol of every published FlashInfer-Bench trace.

    A trace records neither timer nor warm-up, so the protocol claims none.
    """
    return Manifest.of(
        BenchmarkProtocol(
            harness=Harness(
                name=names.SOURCE, repository="https://github.com/flashinfer-ai/flashinfer-bench"
            ),
            measurement=Measurement(timer="harness_reported", primary_statistic="mean"),
            correctness=ProtocolCorrectness(
                reference="definition reference implementation", comparator="flashinfer_bench_eval"
            ),
            comparability=Comparability(family="flashinfer_bench_trace"),
        ),
        Metadata(name="flashinfer-bench-trace", title="FlashInfer-Bench trace harness"),
    )


class Times(Struct, frozen=True, gc=False):
    """Raw times of a run in ms; None where upstream states none that is finite."""

    latency_ms: float | None = None
    reference_latency_ms: float | None = None
    speedup_factor: float | None = None


class Errors(Struct, frozen=True, gc=False):
    """Largest errors; None where upstream states no bound (NaN, Infinity)."""

    absolute: float | None = None
    relative: float | None = None


class Log(Struct, frozen=True, gc=False):
    """What a run printed: its UTF-8 and the digest of that; None where it printed nothing."""

    content: bytes
    digest: str | None


def log_of(text: str | None) -> Log:
    """The log that a trace brings."""
    content = utf8(text) if text else b""
    return Log(content, sha256_digest(content) if content else None)


class Run(Struct, frozen=True, gc=False):
    """A trace with what it is of, its manifest, keys and the raw values beside the normalized ones.

    Nothing in it keeps the text of the trace in memory.
    """

    operation: Operation
    implementation: Implementation
    case: Case
    environment: Environment
    identity_json: str
    digest: str
    metadata_json: str
    status: str
    external_id: str
    comparison_key: str
    metric_key: str
    mean_ns: int | None
    observed_at: datetime
    log: Log
    times: Times
    errors: Errors
    correctness_extra_json: str | None
    evaluation_extra_json: str | None
    raw_status: str
    raw_timestamp: str


_NO_TIMES = Times()
_NO_ERRORS = Errors()


def comparison_key(
    *, operation: str, workload: str, protocol: str, environment: str, correctness: str, metric: str
) -> str:
    """Digest of what must agree for two runs to be comparable (all arguments are digests)."""
    # Written out because every run needs one; the field order is the canonical one.
    return sha256_digest(
        f'{{"correctness":"{correctness}","environment":"{environment}","metric":"{metric}",'
        f'"operation":"{operation}","protocol":"{protocol}","v":1,"workload":"{workload}"}}'
    )


@lru_cache(maxsize=16384)
def _comparison_key(
    operation: str, case: str, environment: str, correctness_key: str, metric: str
) -> str:
    """The comparison key of a trace; all solutions measured alike have the same."""
    return comparison_key(
        operation=operation,
        workload=case,
        protocol=trace_protocol().digest,
        environment=environment,
        correctness=correctness_key,
        metric=metric,
    )


def run_of(
    trace: Trace | TraceOutline,
    evaluation: Evaluation | EvaluationOutline,
    *,
    operation: Operation,
    implementation: Implementation,
    case: Case,
    environment: Environment,
    log: Log,
) -> Run:
    """The run that a trace reports.

    Raises:
        RejectionError: unknown status, impossible numbers or times.
    """
    status = names.STATUSES.get(evaluation.status)
    if status is None:
        raise RejectionError(
            Reason.UNKNOWN_STATUS,
            f"{evaluation.status!r} is none of {', '.join(names.STATUSES)}",
            "$.evaluation.status",
        )
    times = _performance(evaluation.performance, status)
    errors = _correctness(evaluation.correctness)
    observed_at, observed_at_text = _observed_at(evaluation.timestamp)
    mean_ns = None if times.latency_ms is None else round_half_up(times.latency_ms * 1e6)
    metric = NO_METRIC_KEY if mean_ns is None else LATENCY_METRIC_KEY
    protocol = trace_protocol().digest
    # The identity body in canonical order, written out because it is made once a run, of up to
    # 10**7. Its parts come from validated manifests or were checked; a test holds the text
    # against model and schema.
    identity = (
        f'{{"apiVersion":"{API_VERSION}","kind":"BenchmarkRun","spec":{{'
        f"{'' if evaluation.correctness is None else _correctness_json(errors)}"
        f'"environmentDigest":"{environment.digest}",{_evidence_json(log.digest)}'
        f'"implementationDigest":"{implementation.digest}","observedAt":"{observed_at_text}",'
        f'"protocolDigest":"{protocol}","sourceNative":{{"benchmark":{operation.name_json},'
        f'{"" if mean_ns is None else _metrics_json(times)}"source":"{names.SOURCE}"}},'
        f'"status":"{status}",{_timing_json(mean_ns)}"workloadDigest":"{case.digest}"}}}}'
    )
    return Run(
        operation=operation,
        implementation=implementation,
        case=case,
        environment=environment,
        identity_json=identity,
        digest=sha256_digest(identity),
        metadata_json=_metadata_json(case.run_name, _title_json(trace.solution, trace.definition)),
        status=status,
        external_id=f"trace/{trace.solution}/{case.external_id}",
        comparison_key=_comparison_key(
            operation.digest, case.digest, environment.digest, case.correctness_key, metric
        ),
        metric_key=metric,
        mean_ns=mean_ns,
        observed_at=observed_at,
        log=log,
        times=times,
        errors=errors,
        correctness_extra_json=_extra_json(evaluation.correctness),
        evaluation_extra_json=_unread_json(evaluation),
        raw_status=evaluation.status,
        raw_timestamp=evaluation.timestamp,
    )


def _correctness_json(errors: Errors) -> str:
    return (
        f'"correctness":{{"comparator":"{COMPARATOR}"'
        f"{_number_json('maximumAbsoluteError', errors.absolute)}"
        f"{_number_json('maximumRelativeError', errors.relative)}}},"
    )


def _evidence_json(log_digest: str | None) -> str:
    if log_digest is None:
        return ""
    uri = f"kernelindex:artifact/{log_digest}"
    return f'"evidence":{{"logs":{{"digest":"{log_digest}","uri":"{uri}"}}}},'


def _metrics_json(times: Times) -> str:
    return (
        f'"metrics":{{{_number_json("latency_ms", times.latency_ms)[1:]}'
        f"{_number_json('reference_latency_ms', times.reference_latency_ms)}"
        f"{_number_json('speedup_factor', times.speedup_factor)}}},"
    )


def _timing_json(mean_ns: int | None) -> str:
    if mean_ns is None:
        return ""
    return f'"timing":{{"latencyNs":{{"mean":{mean_ns}}},"primaryStatistic":"mean"}},'


def _number_json(name: str, value: float | None) -> str:
    """A further member of an object; nothing where there is no value."""
    return "" if value is None else f',"{name}":{canonical_number(value)}'


def _metadata_json(name: str, title_json: str) -> str:
    return f'{{"name":"{name}","title":{title_json}}}'


@lru_cache(maxsize=4096)
def _title_json(solution: str | None, definition: str) -> str:
    title = f"{solution} · {definition}"
    if len(title) > _TITLE_LENGTH:
        title = f"{title[: _TITLE_LENGTH - 1]}…"
    return canonical_string(title)


def round_half_up(value: float) -> int:
    """ECMAScript's Math.round for positive numbers: halves go up."""
    floor = math.floor(value)
    return floor + 1 if value - floor >= 0.5 else floor


def _performance(performance: Performance | PerformanceOutline | None, status: str) -> Times:
    if performance is None:
        if status == "passed":
            raise RejectionError(
                Reason.NO_PERFORMANCE,
                "status is PASSED but there is no performance",
                "$.evaluation.performance",
            )
        return _NO_TIMES
    latency_ms = performance.latency_ms
    if isinstance(latency_ms, str) or latency_ms is None or not 0 < latency_ms < math.inf:
        raise RejectionError(
            Reason.BAD_LATENCY,
            f"evaluation.performance.latency_ms is {latency_ms!r}; a latency is a positive number "
            "of milliseconds",
            "$.evaluation.performance.latency_ms",
        )
    # The product of the largest numbers is infinite, and has no rounded value.
    if latency_ms * 1e6 > _MAX_LATENCY_NS:
        raise RejectionError(
            Reason.BAD_LATENCY,
            f"evaluation.performance.latency_ms is {latency_ms!r}; that is beyond 2**53 ns",
            "$.evaluation.performance.latency_ms",
        )
    if round_half_up(latency_ms * 1e6) == 0:
        raise RejectionError(
            Reason.BAD_LATENCY,
            f"evaluation.performance.latency_ms is {latency_ms!r}; that rounds to 0 ns, and "
            "nothing takes no time",
            "$.evaluation.performance.latency_ms",
        )
    return Times(
        latency_ms,
        _finite(performance.reference_latency_ms, "performance.reference_latency_ms"),
        _finite(performance.speedup_factor, "performance.speedup_factor"),
    )


def _correctness(correctness: Correctness | CorrectnessOutline | None) -> Errors:
    if correctness is None:
        return _NO_ERRORS
    return Errors(
        _bound(correctness.max_absolute_error, "correctness.max_absolute_error"),
        _bound(correctness.max_relative_error, "correctness.max_relative_error"),
    )


def _finite(value: Measured, field: str) -> float | None:
    number = _number(value, field) if isinstance(value, str) else value
    return number if number is not None and math.isfinite(number) else None


def _bound(value: Measured, field: str) -> float | None:
    number = _number(value, field) if isinstance(value, str) else value
    if number is None or math.isnan(number) or number == math.inf:
        return None
    if number < 0:
        raise RejectionError(
            Reason.BAD_MEASURE,
            f"evaluation.{field} is {value!r}; an error is >= 0",
            f"$.evaluation.{field}",
        )
    return number


def _number(text: str, field: str) -> float:
    if text not in _NON_FINITE:
        raise RejectionError(
            Reason.BAD_MEASURE,
            f"evaluation.{field} is {text!r}, which is no number",
            f"$.evaluation.{field}",
        )
    return _NON_FINITE[text]


def _observed_at(timestamp: str) -> tuple[datetime, str]:
    try:
        return instant_and_text(timestamp)
    except InstantError as error:
        raise RejectionError(
            Reason.BAD_TIMESTAMP, f"evaluation.timestamp: {error}", "$.evaluation.timestamp"
        ) from error


def _extra_json(correctness: Correctness | CorrectnessOutline | None) -> str | None:
    """JSON of free upstream fields; numbers that JSON has no form for become strings.

    Errors that are not finite are among them, since their columns hold only numbers.
    """
    if correctness is None:
        return None
    extra: dict[str, Any] = {**_not_finite(correctness), **(correctness.extra or {})}
    if correctness.matched_ratio is not None:
        extra = {**extra, "matched_ratio": correctness.matched_ratio}
    return _json_of(extra)


def _unread_json(evaluation: Evaluation | EvaluationOutline) -> str | None:
    """JSON of what an evaluation states and no manifest has, e.g. `performance.kernel_ms`."""
    if isinstance(evaluation, EvaluationOutline):
        return None  # an outline has no such fields
    parts = {"": evaluation, "correctness.": evaluation.correctness,
             "performance.": evaluation.performance}  # fmt: skip
    return _json_of(
        {
            f"{prefix}{name}": value
            for prefix, part in parts.items()
            if isinstance(part, OpenDocument)
            for name, value in (part.model_extra or {}).items()
        }
    )


def _json_of(values: dict[str, Any]) -> str | None:
    if not values:
        return None
    try:
        return json.dumps(values, allow_nan=False)
    except ValueError:
        return json.dumps(_without_non_finite(values))


def _not_finite(correctness: Correctness | CorrectnessOutline) -> dict[str, str]:
    """The largest errors that are NaN or infinite, as JSON writes such numbers elsewhere here."""
    errors = {
        "max_absolute_error": correctness.max_absolute_error,
        "max_relative_error": correctness.max_relative_error,
    }
    return {
        name: value if isinstance(value, str) else "NaN" if math.isnan(value) else "Infinity"
        for name, value in errors.items()
        if isinstance(value, str) or (value is not None and not math.isfinite(value))
    }


def _without_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_non_finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_non_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
