"""Whatever happens to a dataset, no published run vanishes and none becomes another's.

Random histories are read in random orders; what is shown is compared with a model that knows only
the documents.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assets.tables.ingestion import IngestionReport
from assets.traces.pull import pull
from pipelines.resources import OpenWarehouse
from tests.builders import dataset, definition
from tests.histories import (
    DEFINITION_STATES,
    Line,
    Revision,
    SolutionFile,
    derived,
    expected_runs,
    ingest_snapshot,
    read_in_order,
)

NAMES = ("toy_add_h8", "toy_other")
FOLDERS = (None, "ann", "bob")
# What does not depend on the order of ingestion; provenance (where it was read first) may.
TABLES = ("runs", "implementations", "solutions", "operations", "workloads", "quarantine")
LEFT_OUT = {"publication_id", "published_at", "first_seen", "last_seen", "revision", "path", "line"}
# Numbers stand for combinations with provenance.
NUMBERS = {"condition_number", "group_number", "comparison_number", "implementation_number"}


class Changes:
    """Random changes of a dataset, one revision after the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines = 0
        self._dropped: list[Line] = []
        self._gone: list[SolutionFile] = []

    def history(self, length: int) -> list[Revision]:
        """Revisions, each with one to three changes since the one before and, often, new traces."""
        first = Revision(
            {NAMES[0]: 0, NAMES[1]: 1},
            {
                "one": SolutionFile("one", NAMES[0]),
                "two": SolutionFile("two", NAMES[0], "bob"),
                "three": SolutionFile("three", NAMES[1], None, "cat"),
            },
        )
        self._add_lines(first)
        revisions = [first]
        while len(revisions) < length:
            following = revisions[-1].next()
            for _ in range(self._random.randint(1, 3)):
                self._random.choice(self._all)(self, following)
            if self._random.random() < 0.7:
                self._add_lines(following)
            revisions.append(following)
        return revisions

    def _change_definition(self, revision: Revision) -> None:
        name = self._random.choice(NAMES)
        revision.definitions[name] = self._random.randrange(len(DEFINITION_STATES))

    def _remove_definition(self, revision: Revision) -> None:
        revision.definitions.pop(self._random.choice(NAMES), None)

    def _add_lines(self, revision: Revision) -> None:
        for item in list(revision.solutions.values()):
            self._lines += 1
            wrong = self._random.random() < 0.1
            name = self._random.choice(NAMES) if wrong else item.definition
            folder = self._random.choice(FOLDERS)
            path = f"traces/{'' if folder is None else folder + '/'}toy/{name}.jsonl"
            revision.traces.setdefault(path, []).append(Line(self._lines, name, item.name))

    def _move_traces(self, revision: Revision) -> None:
        if revision.traces:
            path = self._random.choice(sorted(revision.traces))
            lines = revision.traces.pop(path)
            folder = self._random.choice(("cat", "dan"))
            revision.traces.setdefault(f"traces/{folder}/toy/moved.jsonl", []).extend(lines)

    def _drop_line(self, revision: Revision) -> None:
        if revision.traces:
            lines = revision.traces[self._random.choice(sorted(revision.traces))]
            self._dropped += lines[:1]
            lines[:] = lines[1:]

    def _bring_back_line(self, revision: Revision) -> None:
        if self._dropped:
            line = self._random.choice(self._dropped)
            revision.traces.setdefault(f"traces/ann/toy/{line.definition}.jsonl", []).append(line)

    def _edit_solution(self, revision: Revision) -> None:
        for item in self._one_solution(revision):
            item.source = self._random.randrange(3)

    def _move_solution(self, revision: Revision) -> None:
        for item in self._one_solution(revision):
            item.folder = self._random.choice(FOLDERS)

    def _rename_author(self, revision: Revision) -> None:
        for item in self._one_solution(revision):
            item.author = self._random.choice(("ann", "bob", "baseline"))

    def _describe(self, revision: Revision) -> None:
        for item in self._one_solution(revision):
            item.description = self._random.choice(("", "fast", "faster"))

    def _remove_solution(self, revision: Revision) -> None:
        for item in self._one_solution(revision):
            self._gone.append(revision.solutions.pop(item.name))

    def _bring_back_solution(self, revision: Revision) -> None:
        if self._gone:
            item = self._random.choice(self._gone)
            revision.solutions.setdefault(item.name, SolutionFile(**vars(item)))

    def _give_other_definition(self, revision: Revision) -> None:
        for item in self._one_solution(revision):
            item.definition = self._random.choice(NAMES)

    def _one_solution(self, revision: Revision) -> list[SolutionFile]:
        names = sorted(revision.solutions)
        return [revision.solutions[self._random.choice(names)]] if names else []

    _all = (
        _change_definition,
        _change_definition,
        _change_definition,
        _change_definition,
        _remove_definition,
        _move_traces,
        _drop_line,
        _bring_back_line,
        _edit_solution,
        _move_solution,
        _rename_author,
        _describe,
        _remove_solution,
        _bring_back_solution,
        _give_other_definition,
    )


def check(warehouse: OpenWarehouse, revisions: Sequence[Revision]) -> dict[str, list[object]]:
    """Compare what is shown with the model; return the tables that no order may change."""
    with derived(warehouse, "run_aliases", "identity_aliases", *TABLES) as connection:
        shown = connection.sql(
            """
            select
                substr(runs.raw_timestamp, -2)::integer as number,
                operations.canonical_json,
                runs.reference_digest,
                implementations.source_digest,
                implementations.source_revision
            from runs
            left join implementations using (implementation_digest)
            left join (
                select operation_digest, any_value(canonical_json) as canonical_json
                from published_operations group by all
            ) as operations
                on
                    operations.operation_digest = runs.operation_digest
                    and implementations.operation_digest = runs.operation_digest
            """
        ).fetchall()
        expected = expected_runs(revisions)
        assert len(shown) == len(set(shown)) == len(expected)
        # Digests and documents name each other one to one.
        assert _names(shown) == _names(expected)
        vanished = connection.sql(
            """
            select run_digest from published_runs
            where
                run_digest not in (select run_digest from runs)
                and run_digest not in (
                    select run_aliases.run_digest
                    from run_aliases
                    inner join runs on runs.run_digest = run_aliases.shown_digest
                )
            union all
            select implementation_digest from published_implementations
            where
                implementation_digest not in (select implementation_digest from implementations)
                and implementation_digest not in (
                    select identity_aliases.implementation_digest
                    from identity_aliases
                    inner join implementations
                        on implementations.implementation_digest = identity_aliases.kept_digest
                )
            """
        ).fetchall()
        assert vanished == []
        found: dict[str, list[object]] = {}
        for table in TABLES:
            relation = connection.table(table)
            kept = [name for name in relation.columns if name not in LEFT_OUT | NUMBERS]
            rows = connection.sql(f"select {', '.join(kept)} from {table}").fetchall()
            found[table] = sorted(rows, key=repr)
        return found


def _names(rows: object) -> set[tuple[object, ...]]:
    """Rows with every value but line and revision replaced by the lines that share it."""
    listed = [tuple(row) for row in rows]  # type: ignore[attr-defined]
    named = []
    for row in listed:
        shared = [
            tuple(sorted((other[0], other[4]) for other in listed if other[column] == row[column]))
            for column in (1, 2, 3)
        ]
        named.append((row[0], row[4], *shared))
    return set(named)


def check_sums(reports: Sequence[IngestionReport]) -> None:
    for report in reports:
        for kind, read in report.read.items():
            parts = (
                report.published[kind],
                report.known[kind],
                report.quarantined[kind],
                report.workload_rows[kind],
            )
            assert min(parts) >= 0, report
            assert sum(parts) == read


# Two that forgetting late sightings, and one that taking operations together, would break.
@pytest.mark.integration
@example(seed=7)
@example(seed=17)
@example(seed=0)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
def test_no_run_vanishes_and_the_order_does_not_show(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    length = chosen.randint(2, 6)
    order = list(range(length))
    chosen.shuffle(order)
    revisions = Changes(seed).history(length)
    in_order, reports = read_in_order(tmp_path / "in_order", revisions)
    check_sums(reports)
    other, other_reports = read_in_order(
        tmp_path / "other", [revisions[number] for number in order]
    )
    check_sums(other_reports)
    assert check(other, revisions) == check(in_order, revisions)


@pytest.mark.parametrize("name", ["own/a", "own/b", "own/c", "own/d"])
def test_a_folder_without_commits_keeps_what_it_said_first(tmp_path: Path, name: str) -> None:
    # Nothing but the order of ingestion says which state came first: the digests of its files
    # must not decide, and differ from name to name here.
    folder = dataset(tmp_path / "data", {"definitions/toy/x.json": definition(f"of_{name[-1]}")})
    warehouse = OpenWarehouse(tmp_path / "warehouse")
    warehouse.prepare()
    definition_file = folder / "definitions/toy/toy_add_h8.json"
    shown = []
    for hidden in (8, 16, 32, 8):
        definition_file.write_text(json.dumps(definition(axes__hidden__value=hidden)))
        snapshot = pull(str(folder), revision=None, authors=None, store=warehouse.store, name=name)
        check_sums([ingest_snapshot(warehouse, snapshot)])
        with derived(warehouse, "runs") as connection:
            shown.append(connection.sql("from runs select run_digest, operation_digest").fetchall())
    assert len(shown[0]) == 1
    assert shown == [shown[0]] * 4
