"""One file under `sql/`: its documented header and its SELECT.

What holds for a file alone is checked here; what needs the other files (references, columns,
order) is checked in `catalog.py`. Nothing here runs SQL.

    -- run_rank_facts: one row per eligible run, ranked inside its comparison group, by number
    -- formula: ranking-v1
    -- key: run_digest
    -- column rank: dense rank inside the comparison group, 1 is the fastest
    -- assert positive_rank: rank >= 1
    -- warn plausible: primary_value > 100
    -- uncompressed: run_digest
    -- note: why it is as it is
    select ...

An entry goes on in the next line after `--` and at least three spaces.
"""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

DIALECT = "duckdb"

_ENTRY = re.compile(r"-- (?P<label>[a-z][a-z0-9_]*(?: [a-z][a-z0-9_]*)?): (?P<text>\S.*)")
_CONTINUATION = re.compile(r"-- {3,}(?P<text>\S.*)")


class SqlContractError(Exception):
    """A file under `sql/` is not what it says; the message names file and line."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line
        self.message = message


class Severity(StrEnum):
    """What follows from rows that an assertion is not true for."""

    ERROR = "error"
    """The database is not swapped in."""
    WARN = "warn"
    """It is shown, nothing else."""


@dataclass(frozen=True)
class Column:
    """A documented column; `text` names the unit where there is one."""

    name: str
    text: str
    line: int


@dataclass(frozen=True)
class Assertion:
    """A boolean expression that is true for every row."""

    name: str
    expression: str
    severity: Severity
    line: int


@dataclass(frozen=True)
class SqlFile:
    """A file as it documents itself, and its SELECT.

    `path` is relative to `sql/`'s parent, `folder` the folder under `sql/`. `uncompressed` are
    columns of texts in which nothing repeats: to look for a way of compressing many million
    digests takes longer than to write them.
    """

    path: str
    folder: str
    name: str
    description: str
    formula: str | None
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    assertions: tuple[Assertion, ...]
    uncompressed: tuple[str, ...]
    notes: tuple[str, ...]
    text: str

    @property
    def is_view(self) -> bool:
        """Whether it is a view: reading it in whole would cost more than all tables."""
        return self.folder == "views"

    @property
    def code_version(self) -> str:
        """SHA-256 of the file's text, hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def documentation(self) -> str:
        """Description, formula and notes as one text."""
        formula = [f"Formula: {self.formula}."] if self.formula else []
        return "\n\n".join([f"{self.description}.", *formula, *self.notes])

    @cached_property
    def query(self) -> exp.Query:
        """The SELECT as a syntax tree; checked when the file was read."""
        return _single_query(self.path, self.text)

    def line_of(self, name: str) -> int:
        """The first line on which a name stands after the header; 1 where it does not."""
        word = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
        for number, line in enumerate(self.text.splitlines(), start=1):
            if not line.startswith("--") and word.search(line):
                return number
        return 1


@dataclass(frozen=True)
class _Entry:
    label: str
    subject: str | None
    text: str
    line: int


def read_sql_file(path: str, folder: str, text: str) -> SqlFile:
    """Read one file and check what can be checked without the others.

    Raises:
        SqlContractError: no header, a name that is not the file's, two statements, no SELECT,
            text that is no SQL, columns that cannot be known without running it.
    """
    stem = path.rpartition("/")[2].removesuffix(".sql")
    entries = _entries(path, text)
    if not entries or entries[0].subject is not None or entries[0].label in _WITHOUT_SUBJECT:
        raise SqlContractError(
            path, 1, f"the header is missing; start with `-- {stem}: what a row is`"
        )
    title = entries[0]
    if title.label != stem:
        raise SqlContractError(path, 1, f"the header names {title.label}, the file is {stem}")
    rest = entries[1:]
    file = SqlFile(
        path=path,
        folder=folder,
        name=stem,
        description=title.text,
        formula=_only(path, rest, "formula"),
        key=_names(_only(path, rest, "key")),
        columns=tuple(
            Column(entry.subject or "", entry.text, entry.line)
            for entry in rest
            if entry.label == "column"
        ),
        assertions=tuple(
            Assertion(
                entry.subject or "",
                entry.text,
                Severity.ERROR if entry.label == "assert" else Severity.WARN,
                entry.line,
            )
            for entry in rest
            if entry.label in ("assert", "warn")
        ),
        uncompressed=_names(_only(path, rest, "uncompressed")),
        notes=tuple(entry.text for entry in rest if entry.label == "note"),
        text=text,
    )
    _check_header(file, rest)
    _check_outer_columns(file)
    _check_repeatable(file)
    return file


_WITH_SUBJECT = frozenset({"column", "assert", "warn"})
_WITHOUT_SUBJECT = frozenset({"formula", "key", "note", "uncompressed"})


def _entries(path: str, text: str) -> list[_Entry]:
    entries: list[_Entry] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("--"):
            break
        more = _CONTINUATION.fullmatch(line.rstrip())
        if more and entries:
            last = entries.pop()
            joined = f"{last.text} {more['text']}"
            entries.append(_Entry(last.label, last.subject, joined, last.line))
            continue
        found = _ENTRY.fullmatch(line.rstrip())
        if found is None:
            raise SqlContractError(path, number, f"not a header entry: {line}")
        label, _, subject = found["label"].partition(" ")
        entries.append(_Entry(label, subject or None, found["text"], number))
    return entries


def _only(path: str, entries: list[_Entry], label: str) -> str | None:
    found = [entry for entry in entries if entry.label == label]
    if len(found) > 1:
        raise SqlContractError(path, found[1].line, f"a second `{label}` in the header")
    return found[0].text if found else None


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part)


def _check_header(file: SqlFile, entries: list[_Entry]) -> None:
    for entry in entries:
        if entry.label in _WITH_SUBJECT and entry.subject is None:
            raise SqlContractError(file.path, entry.line, f"`{entry.label}` of what?")
        if entry.label not in _WITH_SUBJECT and (
            entry.label not in _WITHOUT_SUBJECT or entry.subject
        ):
            known = ", ".join(sorted(_WITH_SUBJECT | _WITHOUT_SUBJECT))
            raise SqlContractError(
                file.path, entry.line, f"unknown header entry `{entry.label}`; known are {known}"
            )
    if not file.key:
        raise SqlContractError(file.path, 1, "the header has no `-- key:`")
    names = [column.name for column in file.columns]
    for what, parts in (("key", file.key), ("uncompressed", file.uncompressed)):
        for part in parts:
            if part not in names:
                raise SqlContractError(file.path, 1, f"{what} column {part} is not documented")
    for documented in (file.columns, file.assertions):
        seen: set[str] = set()
        for item in documented:
            if item.name in seen:
                raise SqlContractError(file.path, item.line, f"{item.name} is documented twice")
            seen.add(item.name)
    if file.is_view and file.assertions:
        line = file.assertions[0].line
        raise SqlContractError(
            file.path, line, "a view is not read when it is made; assert nothing"
        )
    if file.folder in ("rankings", "leaderboards") and file.formula is None:
        raise SqlContractError(file.path, 1, "the header has no `-- formula:` with its version")


def _check_outer_columns(file: SqlFile) -> None:
    for projection in file.query.selects:
        if projection.is_star:
            raise SqlContractError(
                file.path,
                file.line_of("select"),
                "the outer select has a `*`; name its columns so that the header can be checked",
            )
        if not projection.alias_or_name:
            text = projection.sql(DIALECT)
            raise SqlContractError(file.path, file.line_of("select"), f"no name for: {text}")


_ORDER_DEPENDENT = (
    exp.Avg,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.Variance,
    exp.VariancePop,
    exp.ArrayAgg,
    exp.GroupConcat,
    exp.AnyValue,
    exp.First,
    exp.Last,
)
_ORDER_DEPENDENT_NAMES = frozenset({"favg", "fsum", "geomean", "kahan_sum", "product", "sem"})
_INTEGERS = exp.DataType.INTEGER_TYPES


def _check_repeatable(file: SqlFile) -> None:
    """Refuse aggregates whose result depends on the order in which threads meet the rows.

    Addition of floating-point numbers is not associative: without an `order by`, two builds from
    the same files differ in the last bits, and a comparison of them tells nothing.
    """
    for aggregate in file.query.find_all(exp.Func):
        if _depends_on_order(aggregate):
            lines = [node.meta["line"] for node in aggregate.walk() if "line" in node.meta]
            raise SqlContractError(
                file.path,
                min(lines, default=1),
                f"the result of {aggregate.sql(DIALECT)} depends on the order of its rows; "
                "write `order by` in it (or list_sort around a list, or cast a sum of integers to "
                "bigint)",
            )


def _depends_on_order(aggregate: exp.Func) -> bool:
    anonymous = isinstance(aggregate, exp.Anonymous)
    argument = aggregate.expressions[0] if anonymous and aggregate.expressions else aggregate.this
    window = aggregate.parent
    if isinstance(argument, exp.Order):
        return False
    if isinstance(aggregate, exp.ArrayAgg) and _is_sorted(aggregate):
        return False
    if isinstance(window, exp.Window) and (window.args.get("order") or window.alias):
        return False
    if anonymous:
        return aggregate.name.lower() in _ORDER_DEPENDENT_NAMES
    if isinstance(aggregate, exp.Sum):
        return not (_is_integer(argument) or _is_integer(aggregate.parent))
    return isinstance(aggregate, _ORDER_DEPENDENT)


def _is_sorted(aggregate: exp.Func) -> bool:
    """Whether it stands in list_sort, by itself or with its filter: the order comes afterwards."""
    parent = (
        aggregate.parent.parent if isinstance(aggregate.parent, exp.Filter) else aggregate.parent
    )
    return isinstance(parent, exp.ArraySort)


def _is_integer(expression: exp.Expr | None) -> bool:
    return isinstance(expression, exp.Cast) and expression.to.this in _INTEGERS


def _single_query(path: str, text: str) -> exp.Query:
    try:
        statements = [item for item in sqlglot.parse(text, read=DIALECT) if item is not None]
    except SqlglotError as error:
        raise SqlContractError(path, error_line(error), f"not SQL: {first_line(error)}") from error
    if len(statements) != 1:
        raise SqlContractError(path, 1, f"{len(statements)} statements; a file is one SELECT")
    if not isinstance(statements[0], exp.Query):
        raise SqlContractError(path, 1, f"a {statements[0].key}; a file is one SELECT")
    return statements[0]


def error_line(error: SqlglotError, default: int = 1) -> int:
    """The line that a parser or optimizer error names."""
    details = getattr(error, "errors", None) or [{}]
    line = details[0].get("line")
    if line is None:
        found = re.search(r"[Ll]ine:? (\d+)", str(error))
        line = int(found[1]) if found else default
    return int(line)


def first_line(error: SqlglotError) -> str:
    """An error's message without the excerpt that follows it and without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0]
