"""From a request's words to the published runs that they mean, in the database of the warehouse.

Nothing is read but tables; the documents of the chosen runs are the business of `collection.py`.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import takewhile

import duckdb

from assets.answers.errors import NoAnswerError
from assets.answers.lookup import find_operation, short
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
_LEAST_DIGITS = 4


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
        return self.label_of(12)

    def label_of(self, digits: int) -> str:
        """The same with so many digits of its digest."""
        return f"{self.run_digest[7:][:digits]} ({self.solution_name} on {self.definition_name})"


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
        raise RerunRefusedError(
            Refusal.UNKNOWN_RUN,
            f"{text}: no published run has this digest",
            [run.label for run in _like(connection, digits[1])],
        )
    if len(found) > 1:
        raise RerunRefusedError(
            Refusal.AMBIGUOUS_RUN,
            f"{text}: {len(found)} runs begin like this; give more digits",
            [run.label_of(max(12, len(digits[1]) + 4)) for run in found[:_SHOWN]],
        )
    [run] = found
    if run.source == RERUN_SOURCE:
        raise RerunRefusedError(
            Refusal.IS_A_RERUN,
            f"{run.label} is a controlled rerun itself; name the run that it reproduces "
            "(reproductions.reproduces_digest)",
        )
    return run


def _like(connection: duckdb.DuckDBPyConnection, digits: str) -> list[ChosenRun]:
    """Runs of the implementation that the digits name, else those that share most digits."""
    found = _rows(
        connection,
        f"select {_COLUMNS} {_FROM} where runs.source <> $own and "
        "starts_with(runs.implementation_digest, 'sha256:' || $digits) order by run_digest",
        {"own": RERUN_SOURCE, "digits": digits},
    ) or _rows(
        connection,
        f"select {_COLUMNS} {_FROM} where runs.source <> $own and "
        "starts_with(runs.run_digest, 'sha256:' || $digits) order by run_digest",
        {"own": RERUN_SOURCE, "digits": digits[:_LEAST_DIGITS]},
    )
    return sorted(found, key=lambda run: -_shared(digits, run.run_digest[7:]))[:_SHOWN]


def _shared(left: str, right: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right)))  # noqa: B905


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
            [short(str(key)) for (key,) in keys[:_SHOWN]],
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
    names = _solution_names(connection, operation)
    for name in selection.solutions:
        if name not in names:
            raise RerunRefusedError(
                Refusal.UNKNOWN_SOLUTION,
                f"{selection.operation} has no solution named {name!r}",
                difflib.get_close_matches(name, names, n=_SHOWN, cutoff=0.4) or names[:_SHOWN],
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
            _workloads(connection, operation, selection.solutions)[:_SHOWN],
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
    try:
        return find_operation(connection, text).digest
    except NoAnswerError as error:
        raise RerunRefusedError(
            Refusal.UNKNOWN_OPERATION, error.message, error.candidates
        ) from error


def _solution_names(connection: duckdb.DuckDBPyConnection, operation: str) -> list[str]:
    rows = connection.execute(
        "select distinct unnest(solution_names) as name from implementations "
        "where operation_digest = $operation order by name",
        {"operation": operation},
    ).fetchall()
    return [str(name) for (name,) in rows]


def _workloads(
    connection: duckdb.DuckDBPyConnection, operation: str, solutions: Sequence[str]
) -> list[str]:
    """Workloads that these solutions have runs on, as people name and know them."""
    rows = connection.execute(
        "select distinct runs.workload_uuid, workloads.axes_label from runs "
        "inner join workloads using (workload_digest) "
        "inner join implementations using (implementation_digest) "
        "where runs.operation_digest = $operation and runs.workload_uuid is not null "
        "and list_has_any(implementations.solution_names, $names::varchar[]) order by all",
        {"operation": operation, "names": list(solutions)},
    ).fetchall()
    return [f"{uuid} ({axes})" for uuid, axes in rows]


def _some(found: list[ChosenRun], where: str, what: str) -> list[ChosenRun]:
    if not found:
        raise RerunRefusedError(Refusal.NOTHING_SELECTED, f"{where}: there is no {what}")
    return found


def _rows(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object]
) -> list[ChosenRun]:
    return [ChosenRun(*row) for row in connection.execute(query, parameters).fetchall()]
