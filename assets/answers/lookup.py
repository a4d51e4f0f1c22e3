"""Find what a person means: a digest, its beginning, an external identifier or a name."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import duckdb

from assets.answers.errors import NoAnswerError

_LEAST_DIGITS = 4
_HEXADECIMAL = re.compile(rf"(?:sha256:)?([0-9a-f]{{{_LEAST_DIGITS},64}})")
_FEW_DIGITS = re.compile(rf"(?:sha256:)?[0-9a-f]{{0,{_LEAST_DIGITS - 1}}}")
_SHOWN_CANDIDATES = 10
_SHORT = 12
_HEAD_DIGITS = 8


class Kind(StrEnum):
    """What can be looked up."""

    RUN = "run"
    IMPLEMENTATION = "implementation"
    WORKLOAD = "workload"
    OPERATION = "operation"
    ENVIRONMENT = "environment"
    PROTOCOL = "protocol"
    PROJECT = "project"


@dataclass(frozen=True, order=True)
class Found:
    """One thing with the name that people know it by."""

    kind: Kind
    digest: str
    name: str


# Of each kind: how it is named in an answer, and the condition under which a text names it.
_NAMES = {
    Kind.RUN: ("external_id", "external_id = $text"),
    Kind.IMPLEMENTATION: (
        "solution_name",
        "list_contains(solution_names, $text) or slug = $text",
    ),
    Kind.WORKLOAD: ("axes_label", "list_contains(external_ids, $text)"),
    Kind.OPERATION: (
        "name",
        "name = $text or slug = $text or list_contains(aliases, $text) "
        "or list_contains(definition_names, $text)",
    ),
    Kind.ENVIRONMENT: ("concat_ws(' · ', gpu_product, summary)", "gpu_product = $text"),
    Kind.PROTOCOL: ("title", "name = $text"),
    Kind.PROJECT: ("name", "slug = $text or name = $text"),
}


def short(digest: str) -> str:
    """The beginning of a digest, without its prefix: enough to name it in most warehouses."""
    return digest.removeprefix("sha256:")[:_SHORT]


def find(
    connection: duckdb.DuckDBPyConnection, text: str, kinds: Iterable[Kind] = tuple(Kind)
) -> Found:
    """The one thing of these kinds that a text names.

    Raises:
        NoAnswerError: nothing of that name (with similar ones), or several.
    """
    wanted = tuple(kinds)
    found = find_all(connection, text, wanted)
    if len(found) == 1:
        return found[0]
    if found:
        shown = tuple(
            f"{item.kind} {short(item.digest)}  {item.name}" for item in found[:_SHOWN_CANDIDATES]
        )
        more = len(found) - len(shown)
        raise NoAnswerError(
            f"{text}: names {len(found)} things; give more of the digest"
            + (f" (the first {len(shown)} are listed)" if more else ""),
            shown,
        )
    names = ", ".join(wanted[:-1]) + f" or {wanted[-1]}" if len(wanted) > 1 else str(wanted[0])
    message = f"{text}: no {names} of that digest or name"
    if _FEW_DIGITS.fullmatch(text.lower()):
        message += f"; of a digest, give {_LEAST_DIGITS} digits or more"
    raise NoAnswerError(message, similar(connection, text))


def find_all(
    connection: duckdb.DuckDBPyConnection, text: str, kinds: Iterable[Kind]
) -> list[Found]:
    """Everything of these kinds that a text names, by kind, then by digest."""
    digits = _HEXADECIMAL.fullmatch(text.lower())
    found: set[Found] = set()
    for kind in kinds:
        label, condition = _NAMES[kind]
        column = f"{kind}_digest"
        select = f"select {column}, {label} from {kind}s where"
        rows = []
        # A run's external identifier has its kind before a slash; there are too many to look
        # through for a text that cannot be one.
        if kind is not Kind.RUN or "/" in text:
            rows += connection.execute(f"{select} {condition}", {"text": text}).fetchall()
        if digits:
            # A range, and asked for by itself, so that the statistics of blocks can be used.
            low = f"sha256:{digits[1]}"
            limits = {"low": low, "high": f"{low}~"}
            if kind is Kind.RUN:
                rows += _runs(connection, digits[1], **limits)
            else:
                rows += connection.execute(
                    f"{select} {column} >= $low and {column} <= $high", limits
                ).fetchall()
        found |= {Found(kind, digest, str(name or "")) for digest, name in rows}
        if kind in _STOOD_FOR and digits:
            found |= _stood_for(connection, kind, **limits)
    return sorted(found)


def _runs(
    connection: duckdb.DuckDBPyConnection, digits: str, low: str, high: str
) -> list[tuple[str, str | None]]:
    """Digests and external identifiers of the runs whose digest begins with some digits."""
    first, last = digest_heads(digits)
    return connection.execute(
        """
        select run_digest, external_id
        from run_facts
        where digest_head between $first and $last and run_digest between $low and $high
        """,
        {"first": first, "last": last, "low": low, "high": high},
    ).fetchall()


def digest_heads(digits: str) -> tuple[int, int]:
    """The lowest and the highest `run_facts.digest_head` of digests that begin with some digits."""
    head = digits[:_HEAD_DIGITS]
    return int(head.ljust(_HEAD_DIGITS, "0"), 16), int(head.ljust(_HEAD_DIGITS, "f"), 16)


def _stood_for(
    connection: duckdb.DuckDBPyConnection, kind: Kind, low: str, high: str
) -> set[Found]:
    """What is shown under another digest than the one that was published and is asked for."""
    rows = connection.execute(_STOOD_FOR[kind], {"low": low, "high": high}).fetchall()
    return {Found(kind, digest, str(name or "")) for digest, name in rows}


_STOOD_FOR = {
    Kind.RUN: """
        select run_facts.run_digest, run_facts.external_id
        from run_aliases
        inner join run_facts on run_facts.run_digest = run_aliases.shown_digest
        where run_aliases.run_digest between $low and $high
    """,
    Kind.IMPLEMENTATION: """
        select implementations.implementation_digest, implementations.solution_name
        from identity_aliases
        inner join implementations
            on implementations.implementation_digest = identity_aliases.kept_digest
        where identity_aliases.implementation_digest between $low and $high
    """,
}


def find_operation(connection: duckdb.DuckDBPyConnection, text: str) -> Found:
    """The operation that a definition name, slug, alias or digest names.

    Raises:
        NoAnswerError: none, with similar names, or several.
    """
    found = find_all(connection, text, (Kind.OPERATION,))
    if len(found) == 1:
        return found[0]
    if found:
        raise NoAnswerError(
            f"{text}: names {len(found)} operations; give the digest of one",
            tuple(f"{short(item.digest)}  {item.name}" for item in found[:_SHOWN_CANDIDATES]),
        )
    raise NoAnswerError(f"{text}: no such operation", similar(connection, text))


def operation_names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The names that operations are known by, sorted."""
    rows = connection.execute(
        "select distinct unnest(definition_names) as name from operations order by name"
    ).fetchall()
    return [str(name) for (name,) in rows]


def similar(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[str, ...]:
    """Names of operations and solutions that look like a text, the most alike first."""
    rows = connection.execute(
        """
        select unnest(definition_names) as name from operations
        union
        select unnest(solution_names) as name from implementations
        """
    ).fetchall()
    names = sorted(str(name) for (name,) in rows)
    close = difflib.get_close_matches(text, names, n=5, cutoff=0.5)
    parts = [name for name in names if text.lower() in name.lower() and name not in close]
    return tuple(close + parts[: 5 - len(close)])


def gpus(connection: duckdb.DuckDBPyConnection, text: str | None) -> list[str]:
    """Devices that a text names: all of its words are words of the device's name.

    Raises:
        NoAnswerError: no such device, with those that there are.
    """
    rows = connection.execute(
        "select distinct gpu_product from environments order by gpu_product"
    ).fetchall()
    products = [str(product) for (product,) in rows]
    if text is None:
        return products
    exact = [product for product in products if product.lower() == text.lower()]
    words = set(_words(text))
    matching = exact or [product for product in products if words <= set(_words(product))]
    if not matching:
        raise NoAnswerError(f"{text}: nothing was measured on such a device", tuple(products))
    return matching


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s_\-]+", text.lower()) if word]
