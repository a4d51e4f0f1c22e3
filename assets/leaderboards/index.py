"""Build the index, without a publication that breaks it where there is one.

Whatever may be published can be derived, so this is the way out for what nobody thought of. When a
statement fails for what rows say, publications are left out from the newest on until the build
works; the oldest one with which it fails is the culprit. It is set aside by itself, named, with
the statement and the error, and the index is built from the others. A failure that rows do not
cause (disk, memory, an interrupt, a damaged file, a statement that fails without any rows or with
those of most publications) sets nothing aside.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from assets.leaderboards.build import (
    BrokenContractError,
    DatabaseOutcome,
    FailedStatementError,
    Progress,
    build_database,
)
from assets.leaderboards.catalog import SqlTable, sql_catalog
from assets.leaderboards.reproduction import examine_database
from assets.tables.database import left_out_runs
from assets.tables.errors import WarehouseError
from assets.tables.leases import reading
from assets.tables.reader import open_database
from assets.tables.set_aside import Change, SetAside, is_as_published, record, set_aside
from assets.tables.time_travel import WarehouseAsOf, find_publication
from assets.tables.warehouse import GENESIS, Warehouse

Say = Callable[[str], None]
Failure = FailedStatementError | BrokenContractError

# What DuckDB raises for what stands in a row, and for nothing about the machine. Its internal
# errors are its own faults, which some rows reach and others do not.
_CAUSED_BY_ROWS = (
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
    duckdb.InvalidTypeException,
    duckdb.TypeMismatchException,
    duckdb.ConstraintException,
    duckdb.NotImplementedException,
    duckdb.InternalException,
)
_MAX_ERROR = 500


@dataclass(frozen=True)
class _Culprit:
    """A publication with which a statement breaks, and without which it does not."""

    publication_id: str
    statement: str
    error: str
    whole: bool

    def entry(self) -> SetAside:
        """What leaves it out of a build."""
        return SetAside(
            at=datetime.now(UTC),
            change=Change.SET_ASIDE,
            publication_id=self.publication_id,
            statement=self.statement,
            error=self.error,
            whole=self.whole,
        )


def build_index(
    warehouse: Warehouse,
    progress: Progress | None = None,
    catalog: tuple[SqlTable, ...] | None = None,
    say: Say | None = None,
) -> DatabaseOutcome:
    """Build the database from what is not set aside, and set aside a publication that breaks it.

    `say` is told what is being looked for and what was set aside.

    Raises:
        WarehouseError: a build that fails for another reason than what a publication brought; the
            old database is in place.
    """
    tables = sql_catalog() if catalog is None else catalog
    aside = set_aside(warehouse)
    culprits: list[_Culprit] = []
    while True:
        omitted = {**aside, **{culprit.publication_id: culprit.entry() for culprit in culprits}}
        try:
            outcome = build_database(warehouse, progress, tables, omitted)
            break
        except (FailedStatementError, BrokenContractError) as failure:
            if not _is_caused_by_rows(failure):
                raise
            _tell(say, f"{_statement(failure)} breaks; looking for the publication that breaks it")
            culprit = _Search(warehouse, _up_to(tables, failure), omitted).culprit()
            if culprit is None:
                raise
            culprits.append(culprit)
            more = {culprit.publication_id: culprit.entry()}
            if not _may_be_set_aside(warehouse, {**omitted, **more}, aside):
                _tell(say, "most of the index would go with it, so nothing is set aside")
                raise
    for culprit in culprits:
        _record(warehouse, culprit)
        _tell(say, f"publication {culprit.publication_id} was set aside: {culprit.error}")
    return outcome


def build_if_needed(warehouse: Warehouse, say: Say | None = None) -> bool:
    """Build the index where it is not that of what is published; whether it was.

    For commands that publish: one that died before it built is made good by the next.

    Raises:
        WarehouseError: as `build_index`.
    """
    if not examine_database(warehouse, rebuild=False).findings:
        return False
    build_index(warehouse, say=say)
    return True


def _may_be_set_aside(
    warehouse: Warehouse, omitted: Mapping[str, SetAside], aside: Mapping[str, SetAside]
) -> bool:
    """Whether it is the publications that are at fault, and not a statement.

    What no database was made from yet can be left out of the next one. One that would lack most
    runs of the present one, itself or with what rests on it, does not take its place.
    """
    known = _built_from(warehouse)
    new = [name for name in omitted if name not in aside]
    if known is not None and known.isdisjoint(new):
        return True
    runs = {item.publication_id: item.tables for item in warehouse.publications()}
    total = sum(tables["runs"].rows for tables in runs.values() if "runs" in tables)
    before, after = left_out_runs(warehouse, aside), left_out_runs(warehouse, omitted)
    return 2 * (after - before) <= total - before or (known is None and len(runs) - 1 == len(new))


def _built_from(warehouse: Warehouse) -> set[str] | None:
    """The publications that the present database was made from; None where it cannot be read."""
    try:
        with open_database(warehouse.root) as connection:
            found = connection.execute("select publication_id from publications").fetchall()
    except (WarehouseError, duckdb.Error):
        return None
    return {publication_id for (publication_id,) in found}


def _record(warehouse: Warehouse, culprit: _Culprit) -> None:
    record(
        warehouse,
        Change.SET_ASIDE,
        culprit.publication_id,
        statement=culprit.statement,
        error=culprit.error,
        whole=culprit.whole,
    )


def readmit(
    warehouse: Warehouse,
    publication: str,
    say: Say | None = None,
    catalog: tuple[SqlTable, ...] | None = None,
) -> SetAside | None:
    """Put a publication back, and build the index with it; what was said if it still breaks it.

    `publication` is an identifier, its beginning, or a number.

    Raises:
        WarehouseError: it is not set aside, or the build fails for another reason.
    """
    publication_id = find_publication(warehouse, publication).publication_id
    aside = set_aside(warehouse)
    if publication_id not in aside:
        names = ", ".join(aside) or "nothing"
        raise WarehouseError(f"{publication_id} is not set aside; what is: {names}")
    record(warehouse, Change.READMITTED, publication_id)
    build_index(warehouse, catalog=catalog, say=say)
    return set_aside(warehouse).get(publication_id)


class _Search:
    """Tries builds that end at the statement that fails, beside the database."""

    def __init__(
        self,
        warehouse: Warehouse,
        catalog: tuple[SqlTable, ...],
        omitted: Mapping[str, SetAside],
    ) -> None:
        self._warehouse = warehouse
        self._catalog = catalog
        self._omitted = omitted

    def culprit(self) -> _Culprit | None:
        """The oldest publication with which the build fails; None where it is no publication.

        Raises:
            WarehouseError: a build that fails for what no row says.
        """
        candidates = [
            publication
            for publication in self._warehouse.publications()
            if publication.publication_id not in (GENESIS, *self._omitted)
        ]
        if not candidates or self._failure_up_to(GENESIS) is not None:
            return None
        why = self._failure_up_to(candidates[-1].publication_id)
        if why is None:
            return None  # It failed once, and not again.
        # All up to `works` build, all up to `fails` do not. Nearly always it is the newest one.
        works, fails = -1, len(candidates) - 1
        middle = fails - 1
        while works < fails - 1:
            found = self._failure_up_to(candidates[middle].publication_id)
            if found is None:
                works = middle
            else:
                fails, why = middle, found
            middle = (works + fails) // 2
        if not is_as_published(self._warehouse, candidates[fails]):
            return None
        culprit = _Culprit(
            candidates[fails].publication_id, _statement(why), _error(why), whole=False
        )
        # Not whole: what all publications share stays of it, unless that is what breaks.
        if self._failure_up_to(culprit.publication_id, culprit.entry()) is None:
            return culprit
        return replace(culprit, whole=True)

    def _failure_up_to(self, publication_id: str, *more: SetAside) -> Failure | None:
        """What fails when nothing is built that is newer than a publication; None for nothing.

        Raises:
            WarehouseError: what no row says.
        """
        omitted = {**self._omitted, **{entry.publication_id: entry for entry in more}}
        with (
            reading(self._warehouse),
            tempfile.TemporaryDirectory(
                dir=self._warehouse.root / "staging", prefix="search-"
            ) as folder,
        ):
            tried = WarehouseAsOf(self._warehouse, publication_id, "search")
            tried.database = Path(folder) / "tried.duckdb"
            try:
                build_database(tried, catalog=self._catalog, omitted=omitted)
            except (FailedStatementError, BrokenContractError) as failure:
                if not _is_caused_by_rows(failure):
                    raise
                return failure
        return None


def _is_caused_by_rows(failure: Failure) -> bool:
    return isinstance(failure, BrokenContractError) or isinstance(failure.cause, _CAUSED_BY_ROWS)


def _statement(failure: Failure) -> str:
    if isinstance(failure, FailedStatementError):
        return failure.path
    return next(table.table.file.path for table in failure.outcome.tables if table.failures)


def _error(failure: Failure) -> str:
    if isinstance(failure, FailedStatementError):
        text = str(failure.cause).splitlines()[0]
    else:
        text = failure.reasons[0].partition(": ")[2]
    return text if len(text) <= _MAX_ERROR else f"{text[: _MAX_ERROR - 1]}…"


def _up_to(catalog: tuple[SqlTable, ...], failure: Failure) -> tuple[SqlTable, ...]:
    """The tables that are made until the first one that fails."""
    path = _statement(failure)
    last = next(number for number, table in enumerate(catalog) if table.file.path == path)
    return catalog[: last + 1]


def _tell(say: Say | None, text: str) -> None:
    if say is not None:
        say(text)
