"""From a request's words to the published runs that they mean, in the database of the warehouse.

Nothing is read but tables; the documents of the chosen runs are the business of `collection.py`.
"""

import re
from dataclasses import dataclass, fields

import duckdb

from assets.reruns.errors import Refusal, RerunRefusedError
from assets.reruns.requests import (
    GroupSelection,
    RunsSelection,
    Selection,
    SolutionsSelection,
    TopSelection,
)

RERUN_SOURCE = "kernelindex-controlled"
"""`runs.source` of what this pipeline measured itself."""

_DIGITS = re.compile(r"(?:sha256:)?([0-9a-f]{4,64})\Z")
_SHOWN = 5


@dataclass(frozen=True)
class ChosenRun:
    """A published run that is to be measured again; a time in ns is null for a failed one."""

    run_digest: str
    operation_digest: str
    workload_digest: str
    implementation_digest: str
    definition_name: str
    solution_name: str
    workload_uuid: str | None
    input_fingerprint: str | None
    reference_digest: str | None
    language: str
    dataset: str
    revision: str
    path: str
    line: int
    source: str
    primary_value: int | None

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.run_digest[7:19]} ({self.solution_name} on {self.definition_name})"


_COLUMNS = ", ".join(
    f"implementations.{field.name}" if field.name == "language" else f"runs.{field.name}"
    for field in fields(ChosenRun)
)
_FROM = "from runs inner join implementations using (implementation_digest)"
# Of several runs of one implementation on one workload: one that passed, the newest of them.
_ONE_EACH = (
    "qualify row_number() over ("
    "partition by runs.implementation_digest, runs.workload_uuid, runs.input_fingerprint "
    "order by runs.status = 'passed' desc, runs.observed_at desc, runs.run_digest) = 1"
)


def choose(connection: duckdb.DuckDBPyConnection, selection: Selection) -> list[ChosenRun]:
    """The runs that a selection means, sorted by definition, workload and solution.

    Raises:
        RerunRefusedError: nothing, or more than one thing, is what was named.
    """
    match selection:
        case RunsSelection():
            chosen = [_run(connection, text) for text in dict.fromkeys(selection.runs)]
        case GroupSelection():
            chosen = _group(connection, selection)
        case SolutionsSelection():
            chosen = _solutions(connection, selection)
        case TopSelection():
            chosen = _top(connection, selection)
    unique = {run.run_digest: run for run in chosen}
    return sorted(
        unique.values(),
        key=lambda run: (run.definition_name, run.workload_uuid or "", run.solution_name),
    )


def _run(connection: duckdb.DuckDBPyConnection, text: str) -> ChosenRun:
    digits = _DIGITS.match(text.lower())
    if digits is None:
        raise RerunRefusedError(
            Refusal.UNKNOWN_RUN,
            f"{text!r} is no run digest: give sha256:<64 hex digits>, or at least its first 4",
        )
    low = f"sha256:{digits[1]}"
    found = _rows(
        connection,
        f"select {_COLUMNS} {_FROM} where run_digest >= $low and run_digest <= $high limit 20",
        {"low": low, "high": f"{low}~"},
    )
    if not found:
        raise RerunRefusedError(Refusal.UNKNOWN_RUN, f"{text}: no published run has this digest")
    if len(found) > 1:
        shown = ", ".join(run.label for run in found[:_SHOWN])
        raise RerunRefusedError(
            Refusal.AMBIGUOUS_RUN,
            f"{text}: {len(found)} runs begin like this; give more digits: {shown}",
        )
    [run] = found
    if run.source == RERUN_SOURCE:
        raise RerunRefusedError(
            Refusal.IS_A_RERUN,
            f"{run.label} is a controlled rerun itself; name the run that it reproduces "
            "(reproductions.reproduces_digest)",
        )
    return run


def _group(connection: duckdb.DuckDBPyConnection, selection: GroupSelection) -> list[ChosenRun]:
    digits = _DIGITS.match(selection.comparison_key.lower())
    low = f"sha256:{digits[1]}" if digits else selection.comparison_key
    keys = connection.execute(
        "select distinct comparison_key from runs "
        "where comparison_key >= $low and comparison_key <= $high order by all limit 20",
        {"low": low, "high": f"{low}~"},
    ).fetchall()
    if len(keys) != 1:
        raise RerunRefusedError(
            Refusal.UNKNOWN_GROUP,
            f"{selection.comparison_key}: "
            + ("no comparison group has this key" if not keys else "several groups begin so")
            + "; see runs.comparison_key",
        )
    found = _rows(
        connection,
        f"select {_COLUMNS} {_FROM} where runs.comparison_key = $key and runs.status = 'passed' "
        "and runs.source <> $own qualify row_number() over (partition by "
        "runs.implementation_digest order by runs.primary_value, runs.run_digest) = 1",
        {"key": keys[0][0], "own": RERUN_SOURCE},
    )
    return _some(found, f"the group {selection.comparison_key}", "run that passed")


def _solutions(
    connection: duckdb.DuckDBPyConnection, selection: SolutionsSelection
) -> list[ChosenRun]:
    operation = _operation(connection, selection.operation)
    for name in selection.solutions:
        known = connection.execute(
            "select 1 from implementations where operation_digest = $operation "
            "and list_contains(solution_names, $name)",
            {"operation": operation, "name": name},
        ).fetchall()
        if not known:
            raise RerunRefusedError(
                Refusal.UNKNOWN_SOLUTION, f"{selection.operation} has no solution named {name!r}"
            )
    found = _rows(
        connection,
        f"select {_COLUMNS} {_FROM} where runs.operation_digest = $operation "
        "and runs.source <> $own "
        "and list_has_any(implementations.solution_names, $names::varchar[]) "
        "and ($workload is null or starts_with(runs.workload_uuid, $workload) "
        "or starts_with(runs.workload_digest, $workload) "
        f"or starts_with(runs.workload_digest, 'sha256:' || $workload)) {_ONE_EACH}",
        {
            "operation": operation,
            "own": RERUN_SOURCE,
            "names": list(selection.solutions),
            "workload": selection.workload,
        },
    )
    if not found and selection.workload is not None:
        raise RerunRefusedError(
            Refusal.UNKNOWN_WORKLOAD,
            f"{selection.workload}: none of these solutions has a published run on a workload "
            "with this identifier or digest",
        )
    return _some(found, ", ".join(selection.solutions), "published run")


def _top(connection: duckdb.DuckDBPyConnection, selection: TopSelection) -> list[ChosenRun]:
    operation = _operation(connection, selection.operation)
    found = _rows(
        connection,
        f"""
        with best as (
            select implementation_digest
            from leaderboard_solutions
            where operation_digest = $operation and groups_passed > 0
            group by implementation_digest
            order by sum(wins) desc, min(slowdown_to_best), implementation_digest
            limit $top
        ),

        newest as (
            select {_COLUMNS}, runs.observed_at
            {_FROM}
            semi join best using (implementation_digest)
            where runs.operation_digest = $operation and runs.status = 'passed'
            and runs.source <> $own
            {_ONE_EACH}
        )

        select * exclude (observed_at) from newest
        qualify row_number() over (
            partition by implementation_digest order by workload_uuid, run_digest
        ) <= $most
        """,
        {
            "operation": operation,
            "own": RERUN_SOURCE,
            "top": selection.top,
            "most": selection.workloads_per_solution,
        },
    )
    return _some(found, f"the leaderboard of {selection.operation}", "run that passed")


def _operation(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    found = connection.execute(
        "select operation_digest from operations where name = $text or slug = $text "
        "or list_contains(definition_names, $text) or operation_digest = $text",
        {"text": text},
    ).fetchall()
    if len(found) != 1:
        raise RerunRefusedError(
            Refusal.UNKNOWN_OPERATION,
            f"{text}: "
            + ("no operation has this name" if not found else "several operations; give a digest"),
        )
    return str(found[0][0])


def _some(found: list[ChosenRun], where: str, what: str) -> list[ChosenRun]:
    if not found:
        raise RerunRefusedError(Refusal.NOTHING_SELECTED, f"{where}: there is no {what}")
    return found


def _rows(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object]
) -> list[ChosenRun]:
    return [ChosenRun(*row) for row in connection.execute(query, parameters).fetchall()]
