"""The standing of an operation: who is how fast, group by group, with what did not count.

Implementations are compared inside one strict group only (same workload, inputs, reference,
protocol and environment), by ranking-v2. Nothing here compares latencies across groups.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import duckdb

from assets.answers.errors import NoAnswerError
from assets.answers.lookup import Found, gpus, short


@dataclass(frozen=True)
class Entry:
    """One implementation in one group; latencies in ns.

    `author` is the first of `authors`, which are several where they have the same source.
    `run_digest` is its fastest eligible run, `slowdown` its median over the lowest median of the
    group, `speedup_over_reference` the median of what the source states.
    """

    rank: int
    tied: bool
    implementation_digest: str
    solution: str
    author: str
    authors: tuple[str, ...]
    language: str
    median_ns: int
    minimum_ns: int
    maximum_ns: int
    repeats: int
    excluded: int
    slowdown: float
    speedup_over_reference: float | None
    run_digest: str
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class NotRanked:
    """Runs of one implementation in one group that do not count, by the reason."""

    implementation_digest: str
    solution: str
    author: str
    status: str
    reason: str
    runs: int


@dataclass
class Group:
    """One strict group: what was measured, on what, and how everyone did."""

    strict_group: str
    comparison_key: str | None
    workload_digest: str
    axes: str
    dtypes: tuple[str, ...]
    workload_ids: tuple[str, ...]
    gpu_product: str
    environment_digest: str
    environment: str
    protocol: str
    protocol_digest: str
    input_fingerprint: str | None
    reference_digest: str | None
    ranking: list[Entry] = field(default_factory=list)
    not_ranked: list[NotRanked] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """Implementations that have a run, ranked or not."""
        return len(
            {entry.implementation_digest for entry in self.ranking}
            | {item.implementation_digest for item in self.not_ranked}
        )


@dataclass(frozen=True)
class Standing:
    """All groups of an operation that were asked for."""

    operation: Found
    gpu_products: tuple[str, ...]
    groups: tuple[Group, ...]

    def as_json(self) -> dict[str, object]:
        """As one JSON object."""
        return {
            "operation": self.operation.name,
            "operation_digest": self.operation.digest,
            "ranking": "ranking-v2",
            "groups": [{**asdict(group), "tried": group.tried} for group in self.groups],
        }


_GROUPS = """
    select
        runs.strict_group,
        runs.group_number,
        max(runs.comparison_key) filter (where runs.eligible) as comparison_key,
        runs.workload_digest,
        any_value(workloads.axes_label) as axes,
        any_value(workloads.dtypes) as dtypes,
        list(distinct runs.workload_uuid order by runs.workload_uuid) as workload_ids,
        any_value(environments.gpu_product) as gpu_product,
        runs.environment_digest,
        any_value(environments.summary) as environment,
        any_value(protocols.title) as protocol,
        any_value(runs.protocol_digest) as protocol_digest,
        any_value(runs.input_fingerprint) as input_fingerprint,
        any_value(runs.reference_digest) as reference_digest
    from runs
    inner join workloads using (workload_digest)
    inner join environments using (environment_digest)
    inner join protocols using (protocol_digest)
    where
        runs.operation_digest = $operation
        and list_contains($gpus, environments.gpu_product)
        and (
            $workload is null
            or list_contains($axes, workloads.axes_label)
            or runs.workload_uuid = $workload
            or starts_with(runs.workload_uuid, $workload)
            or starts_with(runs.workload_digest, $workload)
            or starts_with(runs.workload_digest, 'sha256:' || $workload)
        )
    group by runs.strict_group, runs.group_number, runs.workload_digest, runs.environment_digest
    order by strict_group
"""

_ENTRIES = """
    with counted as (
        select
            runs.strict_group,
            runs.implementation_digest,
            arg_min(runs.run_digest, (runs.primary_value, runs.run_digest)) as run_digest,
            median(runs.reported_speedup) as speedup,
            list(distinct runs.author_directory order by runs.author_directory) as authors
        from runs
        where
            runs.eligible
            and runs.group_number between $first and $last
            and runs.strict_group in (select unnest($groups))
        group by all
    ),

    noted as (
        select
            runs.strict_group,
            runs.implementation_digest,
            list(distinct caveats.code order by caveats.code) as caveats
        from caveats
        inner join runs using (condition_number, run_digest)
        where
            caveats.group_number between $first and $last
            and runs.group_number between $first and $last
            and runs.strict_group in (select unnest($groups))
        group by all
    )

    select
        ranked.strict_group,
        ranked.rank,
        count(*) over (partition by ranked.strict_group, ranked.rank) > 1 as tied,
        ranked.implementation_digest,
        implementations.solution_name,
        ranked.author,
        counted.authors,
        implementations.language,
        ranked.median_ns,
        ranked.minimum_ns,
        ranked.maximum_ns,
        ranked.repeats,
        ranked.excluded,
        ranked.median_ns / min(ranked.median_ns) over (partition by ranked.strict_group),
        counted.speedup,
        counted.run_digest,
        coalesce(noted.caveats, [])
    from ranked_implementations as ranked
    inner join implementations using (implementation_digest)
    inner join counted using (strict_group, implementation_digest)
    left join noted using (strict_group, implementation_digest)
    where
        ranked.group_number between $first and $last
        and ranked.strict_group in (select unnest($groups))
    order by ranked.strict_group, ranked.display_order
"""

_NOT_RANKED = """
    select
        runs.strict_group,
        runs.implementation_digest,
        any_value(runs.solution_name),
        any_value(runs.author_directory),
        runs.status,
        runs.excluded_because[1],
        count(*) as number
    from runs
    where
        not runs.eligible
        and runs.group_number between $first and $last
        and runs.strict_group in (select unnest($groups))
    group by all
    order by all
"""


def standing(
    connection: duckdb.DuckDBPyConnection,
    operation: Found,
    gpu: str | None = None,
    workload: str | None = None,
) -> Standing:
    """Everyone's place in every group of an operation.

    `gpu` are words of a device's name; `workload` is an identifier or its beginning, a digest, or
    bound axes as `a=1,b=2`.

    Raises:
        NoAnswerError: no such device or workload, or nothing was measured.
    """
    products = gpus(connection, gpu)
    parameters = {
        "operation": operation.digest,
        "gpus": products,
        "workload": workload,
        "axes": _labels(connection, operation, workload),
    }
    rows = connection.execute(_GROUPS, parameters).fetchall()
    groups = {
        str(row[0]): Group(
            str(row[0]), row[2], row[3], row[4], tuple(row[5]), tuple(row[6]), *row[7:14]
        )
        for row in rows
    }
    if not groups:
        raise _nothing(connection, operation, gpu, workload)
    # The numbers of an operation's groups follow each other: by them DuckDB skips what is stored of
    # other operations, which it cannot by digests.
    numbers = [row[1] for row in rows]
    wanted = {"groups": list(groups), "first": min(numbers), "last": max(numbers)}
    for row in connection.execute(_ENTRIES, wanted).fetchall():
        groups[row[0]].ranking.append(
            Entry(*(*row[1:6], tuple(row[6] or ()), *row[7:-1], tuple(row[-1])))
        )
    for strict_group, *values in connection.execute(_NOT_RANKED, wanted).fetchall():
        groups[strict_group].not_ranked.append(NotRanked(*values))
    ordered = sorted(
        groups.values(), key=lambda group: (group.gpu_product, group.environment, sizes(group.axes))
    )
    return Standing(operation, tuple(products), tuple(ordered))


def told_apart(groups: Sequence[Group]) -> dict[str, str]:
    """By strict group, what separates it from those that look the same; "" where nothing must.

    Two groups of one workload on one device may differ in protocol, environment, inputs or
    reference, or be of workloads that differ in what their axes do not say.
    """
    alike: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        heading = group.axes, group.dtypes, group.gpu_product, group.environment
        alike.setdefault(heading, []).append(group)
    return {group.strict_group: _apart(group, same) for same in alike.values() for group in same}


def _apart(group: Group, same: Sequence[Group]) -> str:
    parts = []
    for name, digest_of in _SEPARATE.items():
        if len({digest_of(other) for other in same}) > 1:
            digest = digest_of(group)
            title = f"{group.protocol} " if name == "protocol" else ""
            parts.append(f"{name} {title}{short(digest)[:8] if digest else 'unknown'}")
    return ", ".join(parts)


_SEPARATE: dict[str, Callable[[Group], str | None]] = {
    "protocol": lambda group: group.protocol_digest,
    "environment": lambda group: group.environment_digest,
    "inputs": lambda group: group.input_fingerprint,
    "reference": lambda group: group.reference_digest,
    "workload": lambda group: group.workload_digest,
}


def sizes(axes: str) -> list[int]:
    """Bound axes as numbers, so that 32 comes before 192."""
    return [int(part.partition("=")[2]) for part in _parts(axes) if "=" in part]


def _labels(
    connection: duckdb.DuckDBPyConnection, operation: Found, workload: str | None
) -> list[str]:
    """Labels of the workloads that bind axes as a text says, in whatever order it names them."""
    if workload is None or "=" not in workload:
        return []
    wanted = {part.replace(" ", "") for part in workload.split(",") if part.strip()}
    return [label for label in _all_labels(connection, operation) if wanted <= set(_parts(label))]


def _parts(label: str) -> list[str]:
    return [part.replace(" ", "") for part in label.split(",")]


def _all_labels(connection: duckdb.DuckDBPyConnection, operation: Found) -> list[str]:
    rows = connection.execute(
        "select distinct axes_label from workloads where operation_digest = ? order by all",
        [operation.digest],
    ).fetchall()
    return [str(label) for (label,) in rows]


def _nothing(
    connection: duckdb.DuckDBPyConnection,
    operation: Found,
    gpu: str | None,
    workload: str | None,
) -> NoAnswerError:
    if workload is not None:
        return NoAnswerError(
            f"{workload}: no such workload of {operation.name} was measured"
            + (f" on {gpu}" if gpu else ""),
            tuple(_all_labels(connection, operation)[:10]),
        )
    return NoAnswerError(
        f"{operation.name}: nothing was measured" + (f" on {gpu}" if gpu else " yet")
    )
