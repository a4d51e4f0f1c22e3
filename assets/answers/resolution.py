"""Which kernel to take: the best published result for an operation, shape, dtype and GPU.

An exact result agrees in everything that was asked. Without one, near results are listed, each
with every difference named; a result of another operation or dtype is never offered. Bests of
different groups are listed side by side, never ranked against each other by latency.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import duckdb

from assets.answers.errors import NoAnswerError, QueryError
from assets.answers.lookup import Found, find_operation, gpus
from assets.manifests.names import DTYPES

_NEAR = 10


@dataclass(frozen=True)
class Difference:
    """In what a result is not what was asked for."""

    what: str
    asked: str
    found: str


@dataclass(frozen=True)
class Result:
    """The best of one strict group."""

    strict_group: str
    implementation_digest: str
    solution: str
    author: str
    language: str
    license: str | None
    run_digest: str
    median_ns: int
    repeats: int
    group_size: int
    workload: str
    dtypes: tuple[str, ...]
    gpu_product: str
    environment: str
    caveats: tuple[str, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Resolution:
    """Exact results if there are any, else near ones, the nearest first."""

    operation: Found
    exact: tuple[Result, ...]
    near: tuple[Result, ...]

    def as_json(self) -> dict[str, object]:
        """As one JSON object."""
        return {
            "operation": self.operation.name,
            "operation_digest": self.operation.digest,
            "exact": [asdict(result) for result in self.exact],
            "near": [asdict(result) for result in self.near],
        }


# The numbers of an operation's groups follow each other: by them DuckDB skips what is stored of
# other operations, which it cannot by digests.
_NUMBERS = """
    select
        min(group_number),
        max(group_number)
    from strict_groups
    where operation_digest = $operation
"""

_BESTS = """
    with bests as (
        select ranked_implementations.*
        from ranked_implementations
        inner join strict_groups using (strict_group, group_number)
        where
            rank = 1
            and strict_groups.operation_digest = $operation
            and ranked_implementations.group_number between $first and $last
        qualify row_number() over (partition by strict_group order by display_order) = 1
    ),

    measured as (
        select
            runs.strict_group,
            runs.implementation_digest,
            any_value(runs.workload_digest) as workload_digest,
            any_value(runs.environment_digest) as environment_digest,
            max(runs.observed_at) as observed_at,
            arg_min(runs.run_digest, (runs.primary_value, runs.run_digest)) as run_digest
        from runs
        where runs.operation_digest = $operation and runs.eligible
        group by all
    ),

    noted as (
        select
            caveats.run_digest,
            list(caveats.code order by caveats.code) as caveats
        from caveats
        semi join measured using (strict_group, run_digest)
        where caveats.group_number between $first and $last
        group by all
    )

    select
        bests.strict_group,
        bests.implementation_digest,
        implementations.solution_name,
        bests.author,
        implementations.language,
        implementations.license_concluded,
        measured.run_digest,
        bests.median_ns,
        bests.repeats,
        bests.group_size,
        workloads.axes_label,
        workloads.dtypes,
        environments.gpu_product,
        environments.summary,
        coalesce(noted.caveats, []),
        workloads.axes_json
    from bests
    inner join measured using (strict_group, implementation_digest)
    inner join implementations using (implementation_digest)
    inner join workloads on workloads.workload_digest = measured.workload_digest
    inner join environments on environments.environment_digest = measured.environment_digest
    left join noted on noted.run_digest = measured.run_digest
    order by measured.observed_at desc, bests.strict_group
"""


def resolve(
    connection: duckdb.DuckDBPyConnection,
    operation: str,
    axes: Mapping[str, int],
    dtype: str | None = None,
    gpu: str | None = None,
) -> Resolution:
    """The best results for what is asked, exact or near.

    Raises:
        NoAnswerError: no such operation or device, or nothing that could serve.
        QueryError: an axis that the operation does not have.
    """
    found = find_operation(connection, operation)
    axes = _variable_axes(connection, found, axes)
    products = gpus(connection, gpu) if gpu else []
    token = _dtype(dtype)
    exact: list[Result] = []
    near: list[tuple[float, Result]] = []
    [(first, last)] = connection.execute(_NUMBERS, {"operation": found.digest}).fetchall()
    wanted = {"operation": found.digest, "first": first, "last": last}
    for row in connection.execute(_BESTS, wanted).fetchall():
        values, axes_json = row[:-1], row[-1]
        bound = {str(name): int(value) for name, value in json.loads(axes_json).items()}
        dtypes, product = values[11], values[12]
        if token is not None and token not in dtypes:
            continue
        differences = [
            Difference(f"axis {name}", str(value), str(bound.get(name, "unbound")))
            for name, value in axes.items()
            if bound.get(name) != value
        ]
        if gpu is not None and product not in products:
            differences.append(Difference("GPU", gpu, product))
        result = Result(
            *(*values[:11], tuple(dtypes), *values[12:14], tuple(values[14]), tuple(differences))
        )
        if differences:
            near.append((_distance(axes, bound, gpu is None or product in products), result))
        else:
            exact.append(result)
    if not exact and not near:
        of_dtype = f" with {token} inputs" if token else ""
        raise NoAnswerError(f"{found.name}: no ranked result{of_dtype}")
    near.sort(key=lambda item: item[0])
    return Resolution(
        found, tuple(exact), () if exact else tuple(result for _, result in near[:_NEAR])
    )


def parse_axes(text: str | None) -> dict[str, int]:
    """Axes as `a=1,b=2`.

    Raises:
        QueryError: text of another form.
    """
    axes: dict[str, int] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not name or not value.removeprefix("-").isdigit():
            raise QueryError(f"--axes: {part.strip()!r} is not of the form name=integer")
        axes[name] = int(value)
    return axes


def _variable_axes(
    connection: duckdb.DuckDBPyConnection, operation: Found, axes: Mapping[str, int]
) -> dict[str, int]:
    """The axes that workloads bind; what an operation fixes must be asked for as it is."""
    [(variable, constants_json)] = connection.execute(
        "select variable_axes, constant_axes_json from operations where operation_digest = ?",
        [operation.digest],
    ).fetchall()
    constants = json.loads(constants_json or "{}")
    known = connection.execute(
        "select distinct unnest(json_keys(axes_json)) from workloads where operation_digest = ?",
        [operation.digest],
    ).fetchall()
    names = {*variable, *(str(name) for (name,) in known)}
    for name, value in axes.items():
        if name in constants and name not in names:
            if constants[name] != value:
                raise NoAnswerError(
                    f"{operation.name}: its axis {name} is always {constants[name]}, never {value}"
                )
        elif name not in names:
            raise QueryError(
                f"{operation.name} has no axis {name}; it has {', '.join(sorted(names))}"
            )
    return {name: value for name, value in axes.items() if name in names}


def _dtype(text: str | None) -> str | None:
    if text is None:
        return None
    return DTYPES.get(text.lower(), text.lower())


def _distance(asked: Mapping[str, int], bound: Mapping[str, int], same_gpu: bool) -> float:
    """How far a result is: another device counts more than any other shape."""
    shape = sum(
        abs(math.log2(max(bound.get(name, 0), 0) + 1) - math.log2(max(value, 0) + 1))
        for name, value in asked.items()
    )
    return shape + (0.0 if same_gpu else 1000.0)
