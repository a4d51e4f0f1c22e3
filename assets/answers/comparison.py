"""Compare two runs or two implementations: only what may be compared is.

Runs are comparable inside one strict group (same workload, inputs, reference, protocol and
environment). Anything else is a mismatch, and every mismatch is named.
"""

import math
from dataclasses import asdict, dataclass

import duckdb

from assets.answers.errors import NoAnswerError
from assets.answers.lookup import Found, Kind, short
from assets.answers.standings import sizes


@dataclass(frozen=True)
class Side:
    """One of the two; `value_ns` is a run's latency, or an implementation's median."""

    digest: str
    solution: str
    author: str
    value_ns: int
    minimum_ns: int
    maximum_ns: int
    repeats: int


@dataclass(frozen=True)
class GroupComparison:
    """Both in one strict group. `ratio` is B's latency over A's: above 1, A is faster."""

    strict_group: str
    workload: str
    gpu_product: str
    a: Side
    b: Side
    ratio: float
    faster: str | None

    @property
    def overlap(self) -> bool:
        """Whether the ranges of the repeats overlap, so that the order may be noise."""
        return self.a.minimum_ns <= self.b.maximum_ns and self.b.minimum_ns <= self.a.maximum_ns


@dataclass(frozen=True)
class Mismatch:
    """Something that must agree and does not."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class Comparison:
    """What came of it; without `groups` the two are not comparable, and `mismatches` say why."""

    kind: Kind
    a: Found
    b: Found
    groups: tuple[GroupComparison, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def is_comparable(self) -> bool:
        """Whether they may be compared at all."""
        return bool(self.groups)

    @property
    def ratio(self) -> float | None:
        """Geometric mean over the groups of B's latency over A's; above 1, A is faster."""
        if not self.groups:
            return None
        return math.exp(sum(math.log(group.ratio) for group in self.groups) / len(self.groups))

    def as_json(self) -> dict[str, object]:
        """As one JSON object."""
        return {
            "comparable": self.is_comparable,
            "kind": str(self.kind),
            "a": self.a.digest,
            "b": self.b.digest,
            "ratio": self.ratio,
            "groups": [{**asdict(group), "ranges_overlap": group.overlap} for group in self.groups],
            "mismatches": [asdict(mismatch) for mismatch in self.mismatches],
        }


# What must agree for two runs to be comparable: what it is called, and where it stands.
_MUST_AGREE = {
    "operation": "runs.definition_name || ' ' || runs.operation_digest[8:19]",
    "workload": "workloads.axes_label || ' ' || runs.workload_digest[8:19]",
    "input dtypes": "array_to_string(workloads.dtypes, ', ')",
    "inputs (tensor files)": "runs.input_fingerprint[8:19]",
    "reference source": "runs.reference_digest[8:19]",
    "correctness rules": "runs.correctness_key[8:19]",
    "metric": "runs.metric_key",
    "protocol": "protocols.title || ' ' || runs.protocol_digest[8:19]",
    "timer": "protocols.timer",
    "GPU": "environments.gpu_product",
    "CUDA": "environments.cuda_toolkit",
    "driver": "environments.driver",
    "framework": "concat_ws(' ', environments.framework_name, environments.framework_version)",
    "libraries": "environments.libraries_json",
    "environment": "runs.environment_digest[8:19]",
}

_RUN = f"""
    select
        runs.strict_group,
        workloads.axes_label,
        environments.gpu_product,
        runs.run_digest,
        runs.solution_name,
        runs.author_directory,
        runs.primary_value,
        runs.excluded_because,
        {", ".join(_MUST_AGREE.values())}
    from runs
    left join workloads using (workload_digest)
    left join protocols using (protocol_digest)
    left join environments using (environment_digest)
    where runs.run_digest = $digest
"""

_SHARED_GROUPS = """
    select
        a.strict_group,
        any_value(workloads.axes_label),
        any_value(environments.gpu_product),
        any_value(struct_pack(
            value := a.median_ns,
            low := a.minimum_ns,
            high := a.maximum_ns,
            repeats := a.repeats,
            author := a.author
        )),
        any_value(struct_pack(
            value := b.median_ns,
            low := b.minimum_ns,
            high := b.maximum_ns,
            repeats := b.repeats,
            author := b.author
        ))
    from ranked_implementations as a
    inner join ranked_implementations as b
        on
            b.strict_group = a.strict_group
            and a.implementation_digest = $a
            and b.implementation_digest = $b
    inner join runs
        on runs.strict_group = a.strict_group and runs.implementation_digest = $a
    inner join workloads using (workload_digest)
    inner join environments using (environment_digest)
    group by a.strict_group
    order by 2, 3, 1
"""


def compare(connection: duckdb.DuckDBPyConnection, a: Found, b: Found) -> Comparison:
    """Compare two runs, or two implementations over all groups that both passed in.

    Raises:
        NoAnswerError: two things that are neither, or of different kinds, or one and the same.
    """
    if a.kind is not b.kind or a.kind not in (Kind.RUN, Kind.IMPLEMENTATION):
        raise NoAnswerError(
            f"{a.kind} {short(a.digest)} and {b.kind} {short(b.digest)}: two runs or two "
            "implementations can be compared"
        )
    if a.digest == b.digest:
        raise NoAnswerError(f"{a.kind} {short(a.digest)}: both are one and the same")
    if a.kind is Kind.RUN:
        return _compare_runs(connection, a, b)
    return _compare_implementations(connection, a, b)


def _compare_runs(connection: duckdb.DuckDBPyConnection, a: Found, b: Found) -> Comparison:
    first, second = (
        connection.execute(_RUN, {"digest": found.digest}).fetchall()[0] for found in (a, b)
    )
    must_agree = len(_MUST_AGREE)
    mismatches = [
        Mismatch(what, _shown(left), _shown(right))
        for what, left, right in zip(
            _MUST_AGREE, first[-must_agree:], second[-must_agree:], strict=True
        )
        if left != right
    ]
    reasons = [", ".join(row[7]) for row in (first, second)]
    if any(reasons):
        mismatches.insert(
            0, Mismatch("eligible", *(f"no: {text}" if text else "yes" for text in reasons))
        )
    if mismatches or first[0] != second[0]:
        return Comparison(a.kind, a, b, (), tuple(mismatches))
    sides = [Side(*(*row[3:7], row[6], row[6], 1)) for row in (first, second)]
    return Comparison(a.kind, a, b, (_group(*first[:3], *sides),), ())


def _compare_implementations(
    connection: duckdb.DuckDBPyConnection, a: Found, b: Found
) -> Comparison:
    rows = connection.execute(_SHARED_GROUPS, {"a": a.digest, "b": b.digest}).fetchall()
    groups = tuple(
        _group(strict_group, workload, gpu, _side(a, first), _side(b, second))
        for strict_group, workload, gpu, first, second in sorted(
            rows, key=lambda row: (row[2], sizes(row[1]))
        )
    )
    if groups:
        return Comparison(a.kind, a, b, groups, ())
    return Comparison(a.kind, a, b, (), _why_apart(connection, a, b))


def _side(found: Found, values: dict[str, object]) -> Side:
    numbers = [int(str(values[name])) for name in ("value", "low", "high", "repeats")]
    return Side(found.digest, found.name, str(values["author"]), *numbers)


def _group(strict_group: str, workload: str, gpu: str, a: Side, b: Side) -> GroupComparison:
    faster = None if a.value_ns == b.value_ns else ("a" if a.value_ns < b.value_ns else "b")
    return GroupComparison(strict_group, workload, gpu, a, b, b.value_ns / a.value_ns, faster)


def _why_apart(connection: duckdb.DuckDBPyConnection, a: Found, b: Found) -> tuple[Mismatch, ...]:
    """In what the groups of two implementations differ."""
    sides = []
    for found in (a, b):
        [row] = connection.execute(
            """
            select
                any_value(implementations.definition_name || ' '
                    || implementations.operation_digest[8:19]),
                coalesce(list(distinct environments.gpu_product order by
                    environments.gpu_product), []),
                coalesce(list(distinct environments.summary order by environments.summary), []),
                count(distinct runs.workload_digest),
                count(runs.run_digest),
                count(ranked.strict_group)
            from implementations
            left join runs using (implementation_digest)
            left join environments using (environment_digest)
            left join ranked_implementations as ranked
                on
                    ranked.strict_group = runs.strict_group
                    and ranked.implementation_digest = runs.implementation_digest
            where implementations.implementation_digest = ?
            """,
            [found.digest],
        ).fetchall()
        sides.append(row)
    first, second = sides
    mismatches = [
        Mismatch(what, _shown(first[at]), _shown(second[at]))
        for at, what in enumerate(("operation", "GPU", "environment"))
        if first[at] != second[at]
    ]
    if not first[5] or not second[5]:
        mismatches.insert(
            0,
            Mismatch(
                "runs that passed",
                *(f"{row[5]} of {row[4]}" for row in (first, second)),
            ),
        )
    if not mismatches:
        mismatches.append(
            Mismatch(
                "groups that both passed in",
                *(f"none; passed in {row[5]}" for row in (first, second)),
            )
        )
    return tuple(mismatches)


def _shown(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
