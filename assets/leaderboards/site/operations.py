"""The pages of operations and of their comparison groups: who is fastest, and what failed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assets.answers.lookup import Found, Kind, short
from assets.answers.standings import Group, Standing, standing
from assets.answers.values import json_value
from assets.leaderboards.site import addresses
from assets.leaderboards.site.figures import (
    Figure,
    csv_text,
    latency_by_size,
    record_history,
)
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader, Row, grouped
from assets.leaderboards.site.rendering import Renderer, data_json

# What of a group's runs stands on its page; all of them are in the files beside it.
_SHOWN_RUNS = 400
_SHOWN_HISTORIES = 4

_OPERATIONS = """
    select
        operations.*,
        (
            select count(*) from workloads
            where workloads.operation_digest = operations.operation_digest
        ) as workloads
    from operations
    order by operations.name, operations.operation_digest
"""

_BOARDS = "from leaderboard_operations order by operation, gpu_product"

_SOLUTIONS = """
    select *
    from leaderboard_solutions
    where operation_digest = $operation
    order by gpu_product, wins desc, groups_passed desc, slowdown_to_best nulls last, solution
"""

_RUNS = """
    with noted as (
        select
            caveats.run_digest,
            list(caveats.code order by caveats.code) as caveats
        from caveats
        inner join runs using (strict_group, run_digest)
        where runs.operation_digest = $operation
        group by caveats.run_digest
    )

    select
        runs.strict_group,
        runs.run_digest,
        runs.implementation_digest,
        runs.solution_name as solution,
        runs.author_directory as author,
        runs.status,
        runs.primary_value,
        runs.evidence_level,
        runs.observed_at,
        runs.max_absolute_error,
        runs.max_relative_error,
        runs.reported_speedup,
        runs.log_digest,
        runs.comparison_key,
        runs.input_fingerprint,
        runs.eligible,
        runs.excluded_because as reasons,
        ranked_runs.rank,
        ranked_runs.group_size,
        coalesce(noted.caveats, []) as caveats
    from runs
    left join ranked_runs using (run_digest)
    left join noted using (run_digest)
    where runs.operation_digest = $operation
    order by
        runs.strict_group, ranked_runs.rank nulls last, ranked_runs.display_order,
        runs.solution_name, runs.observed_at, runs.run_digest
"""

_EVENTS = """
    select
        runs.strict_group,
        record_events.*,
        runs.solution_name as solution,
        runs.author_directory as author
    from record_events
    inner join runs using (run_digest)
    where runs.operation_digest = $operation
    order by record_events.comparison_key, record_events.at, record_events.primary_value desc
"""

_SIBLINGS = """
    select comparison_key, list(distinct strict_group order by strict_group) as groups
    from runs
    where runs.eligible and runs.operation_digest = $operation
    group by comparison_key
    having count(distinct strict_group) > 1
"""

_RUN_COLUMNS = (
    "rank",
    "run_digest",
    "solution",
    "author",
    "status",
    "primary_value",
    "evidence_level",
    "observed_at",
    "max_absolute_error",
    "max_relative_error",
    "reported_speedup",
    "reasons",
    "caveats",
    "implementation_digest",
    "comparison_key",
)


def write_operation_pages(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> int:
    """Write the list of operations, each operation's page and the pages of its groups."""
    operations = reader.rows(_OPERATIONS)
    boards = grouped(reader.rows(_BOARDS), "operation_digest")
    explanations = {
        row["reason"]: row["explanation"]
        for row in reader.rows("select distinct reason, explanation from excluded_runs")
    }
    for operation in operations:
        _write_operation(
            reader,
            renderer,
            folder,
            operation,
            boards.get(operation["operation_digest"], []),
            explanations,
        )
    folder.write(
        addresses.OPERATIONS,
        renderer.page(
            addresses.OPERATIONS,
            "operations.html",
            operations=[
                {**row, "boards": boards.get(row["operation_digest"], [])} for row in operations
            ],
        ),
    )
    return len(operations)


def operation_figures(reader: IndexReader, operation: Row) -> tuple[list[Figure], list[Figure]]:
    """An operation's latencies by size, one figure for each device, and histories of records."""
    tried = _tried(reader, operation)
    groups = tried.standing.groups if tried.standing else ()
    return _size_figures(operation, groups), _histories(groups, tried.events)


def _write_operation(
    reader: IndexReader,
    renderer: Renderer,
    folder: SiteFolder,
    operation: Row,
    boards: Sequence[Row],
    explanations: dict[str, str],
) -> None:
    digest = operation["operation_digest"]
    tried = _tried(reader, operation) if boards else _Tried()
    groups = tried.standing.groups if tried.standing else ()
    for group in groups:
        others = tried.siblings.get(group.comparison_key, [])
        _write_group(
            renderer,
            folder,
            operation,
            group,
            tried.runs[group.strict_group],
            tried.events.get(group.comparison_key, []),
            [other for other in others if other != group.strict_group],
            explanations,
        )
    address = addresses.operation(digest)
    figures = [*_size_figures(operation, groups), *_histories(groups, tried.events)]
    _write_figures(folder, address, figures)
    folder.write(
        addresses.beside(address, ".json"),
        data_json(
            {
                "operation": {name: json_value(value) for name, value in operation.items()},
                "standing": json_value(tried.standing.as_json()) if tried.standing else None,
                "manifest": reader.manifest(digest),
            }
        ),
    )
    folder.write(
        address,
        renderer.page(
            address,
            "operation.html",
            operation=operation,
            manifest=reader.manifest(digest),
            boards=boards,
            groups=groups,
            axes=[_axes(group) for group in groups],
            axis_names=operation["variable_axes"],
            several_environments=_several_environments(groups),
            solutions=tried.solutions,
            figures=figures,
            failures=_failures([run for found in tried.runs.values() for run in found]),
        ),
    )


@dataclass
class _Tried:
    """What is known of an operation that was tried; nothing, for one that was not."""

    standing: Standing | None = None
    runs: dict[str, list[Row]] = field(default_factory=dict)
    events: dict[str | None, list[Row]] = field(default_factory=dict)
    siblings: dict[str | None, list[str]] = field(default_factory=dict)
    solutions: list[Row] = field(default_factory=list)


def _tried(reader: IndexReader, operation: Row) -> _Tried:
    wanted = {"operation": operation["operation_digest"]}
    found = Found(Kind.OPERATION, operation["operation_digest"], operation["name"])
    return _Tried(
        standing(reader.connection, found),
        grouped(reader.rows(_RUNS, wanted), "strict_group"),
        grouped(reader.rows(_EVENTS, wanted), "comparison_key"),
        {row["comparison_key"]: row["groups"] for row in reader.rows(_SIBLINGS, wanted)},
        reader.rows(_SOLUTIONS, wanted),
    )


def _write_group(
    renderer: Renderer,
    folder: SiteFolder,
    operation: Row,
    group: Group,
    runs: Sequence[Row],
    events: Sequence[Row],
    siblings: Sequence[str],
    explanations: dict[str, str],
) -> None:
    address = addresses.group(group.strict_group)
    label = f"{operation['name']}, {group.axes} on {group.gpu_product}"
    history = record_history("records", label, events)
    _write_figures(folder, address, [history] if history else [])
    plain = [
        {name: json_value(run[name]) for name in _RUN_COLUMNS}
        | {"page": addresses.run(run["run_digest"])}
        for run in runs
    ]
    folder.write(
        addresses.beside(address, ".json"),
        data_json(
            {
                "operation": operation["name"],
                "strict_group": group.strict_group,
                "comparison_key": group.comparison_key,
                "workload": group.axes,
                "gpu_product": group.gpu_product,
                "environment": group.environment,
                "protocol": group.protocol,
                "ranking": [json_value(vars(entry)) for entry in group.ranking],
                "not_ranked": [json_value(vars(item)) for item in group.not_ranked],
                "runs": plain,
            }
        ),
    )
    folder.write(
        addresses.beside(address, ".csv"),
        csv_text(_RUN_COLUMNS, ([run[name] for name in _RUN_COLUMNS] for run in runs)),
    )
    shown = runs[:_SHOWN_RUNS]
    best_evidence = {run["implementation_digest"]: run["evidence_level"] for run in reversed(runs)}
    folder.write(
        address,
        renderer.page(
            address,
            "group.html",
            operation=operation,
            group=group,
            runs=shown,
            hidden=len(runs) - len(shown),
            evidence=best_evidence,
            failed=[run for run in shown if not run["eligible"]],
            ranked=[run for run in shown if run["eligible"]],
            explanations=explanations,
            figure=history,
            siblings=siblings,
            comparable=plain[:_SHOWN_RUNS],
        ),
    )


def _size_figures(operation: Row, groups: Sequence[Group]) -> list[Figure]:
    by_gpu: dict[str, list[Group]] = {}
    for group in groups:
        by_gpu.setdefault(group.gpu_product, []).append(group)
    figures = (
        latency_by_size(
            f"latency-{addresses.named(gpu_product)}", operation["name"], gpu_product, found
        )
        for gpu_product, found in by_gpu.items()
    )
    return [figure for figure in figures if figure is not None]


def _histories(groups: Sequence[Group], events: dict[str | None, list[Row]]) -> list[Figure]:
    """The groups whose record was taken most often."""
    moved = sorted(
        (group for group in groups if len(events.get(group.comparison_key or "", ())) > 1),
        key=lambda group: (-len(events[group.comparison_key or ""]), group.strict_group),
    )
    figures = (
        record_history(
            f"records-{short(group.strict_group)}",
            f"{group.axes} on {group.gpu_product}",
            events[group.comparison_key or ""],
        )
        for group in moved[:_SHOWN_HISTORIES]
    )
    return [figure for figure in figures if figure is not None]


def _write_figures(folder: SiteFolder, page: str, figures: Sequence[Figure]) -> None:
    for figure in figures:
        folder.write(addresses.beside(page, f"-{figure.name}.csv"), figure.csv())
        folder.write(addresses.beside(page, f"-{figure.name}.json"), figure.json())


def _several_environments(groups: Sequence[Group]) -> frozenset[str]:
    """Devices whose groups differ in more than the workload."""
    found: dict[str, set[str]] = {}
    for group in groups:
        found.setdefault(group.gpu_product, set()).add(group.environment)
    return frozenset(product for product, environments in found.items() if len(environments) > 1)


def _axes(group: Group) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in group.axes.split(","))
    return {name: value for name, mark, value in pairs if mark}


def _failures(runs: Sequence[Row]) -> list[dict[str, Any]]:
    """Runs that are not ranked, by implementation, status and first reason."""
    counts: Counter[tuple[str, ...]] = Counter()
    examples: dict[tuple[str, ...], str] = {}
    for run in runs:
        if not run["eligible"]:
            key = (
                run["solution"],
                run["implementation_digest"],
                run["author"],
                run["status"],
                run["reasons"][0],
            )
            counts[key] += 1
            examples.setdefault(key, run["run_digest"])
    names = ("solution", "implementation_digest", "author", "status", "reason")
    return [
        {**dict(zip(names, key, strict=True)), "runs": number, "run_digest": examples[key]}
        for key, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
