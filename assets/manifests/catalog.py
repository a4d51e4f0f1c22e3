"""What traces are resolved against: the operations and implementations of one dataset revision.

Reads definitions and solutions, keeps what could not be published as quarantine, and answers
which implementation a trace measured.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import ValidationError

from assets.manifests.canonical import sha256_digest
from assets.manifests.implementations import (
    DatasetOrigin,
    IdentityRevision,
    Implementation,
    implementation_of,
)
from assets.manifests.near_names import near_name
from assets.manifests.operations import Operation, operation_of
from assets.manifests.quarantine import (
    MOST_FAULTS_A_FILE,
    MOST_MESSAGE_CHARACTERS,
    QuarantinedItem,
    Reason,
    RejectionError,
)
from assets.manifests.rejections import rejection_of
from assets.traces.documents import Definition, Document, OpenDocument, Solution
from assets.traces.layout import author_of, root_of
from assets.traces.lines import (
    NESTED_TOO_DEEPLY,
    Malformed,
    RawDocument,
    cut_again,
    excerpt,
    explain,
    read_documents,
)
from assets.traces.snapshot import DatasetFile

_Model = TypeVar("_Model", bound=Document)

# A document that the strict reader takes is nested less deeply than this.
_MAX_DEPTH = 200
_MOST_PLACES = 5
# Names for which a near one is looked for; a dataset with more of them has another fault.
_MOST_PROPOSED = 200
_NAME = re.compile(rb'"name"\s*:\s*"([^"\\]*)"')

ReadFile = Callable[[DatasetFile], bytes]
"""The raw bytes of a file of the snapshot."""


@dataclass(frozen=True)
class Located:
    """Where a document starts, and the digest of its bytes."""

    path: str
    line: int
    document_digest: str


@dataclass
class Catalog:
    """Operations and implementations by name, with where each was found."""

    origin: DatasetOrigin
    operations: dict[str, Operation] = field(default_factory=dict)
    operation_rows: list[tuple[Operation, Located]] = field(default_factory=list)
    implementations: dict[str, list[Implementation]] = field(default_factory=dict)
    implementation_rows: list[tuple[Implementation, Located]] = field(default_factory=list)
    quarantined_definitions: set[str] = field(default_factory=set)
    quarantined_solutions: set[str] = field(default_factory=set)
    near_solutions: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """What was proposed for unknown solutions of definitions: many traces name the same one."""

    def operation(self, name: str) -> Operation:
        """The operation of a definition name.

        Raises:
            RejectionError: where the dataset has none that could be published.
        """
        operation = self.operations.get(name)
        if operation is not None:
            return operation
        if name in self.quarantined_definitions:
            raise RejectionError(
                Reason.DEFINITION_IN_QUARANTINE,
                f"definition {name!r} is in quarantine",
                "$.definition",
            )
        raise RejectionError(
            Reason.UNKNOWN_DEFINITION, f"there is no definition {name!r}", "$.definition"
        )

    def implementation(self, name: str, definition: str, trace_path: str) -> Implementation:
        """The implementation that a trace of a definition measured.

        The place of the trace decides between solutions of one name: first those of the same
        dataset root, among them those of the same author directory.

        Raises:
            RejectionError: where it cannot be told, or is missing.
        """
        named = self.implementations.get(name, [])
        candidates = [item for item in named if item.definition == definition]
        if not candidates:
            raise self._no_implementation(name, definition, named)
        root, author_directory = root_of(trace_path), author_of(trace_path)
        near = [item for item in candidates if root_of(item.path) == root] or candidates
        own = [item for item in near if item.author_directory == author_directory]
        chosen = own or near
        if len({item.digest for item in chosen}) > 1:
            raise _ambiguous(name, definition, chosen, author_directory if own else None)
        return chosen[0]

    def _no_implementation(
        self, name: str, definition: str, named: list[Implementation]
    ) -> RejectionError:
        if named:
            return RejectionError(
                Reason.SOLUTION_OF_OTHER_DEFINITION,
                f"solution {name!r} implements {named[0].definition!r}, not {definition!r}",
                "$.solution",
            )
        if name in self.quarantined_solutions:
            return RejectionError(
                Reason.SOLUTION_IN_QUARANTINE, f"solution {name!r} is in quarantine", "$.solution"
            )
        return RejectionError(
            Reason.UNKNOWN_SOLUTION,
            f"no file of this dataset holds solution {name!r}{self._proposed(name, definition)}",
            "$.solution",
        )

    def _proposed(self, name: str, definition: str) -> str:
        key = name, definition
        if key not in self.near_solutions:
            if len(self.near_solutions) >= _MOST_PROPOSED:
                return ""
            of_definition = {
                known
                for known, items in self.implementations.items()
                if any(item.definition == definition for item in items)
            }
            self.near_solutions[key] = near_name(name, of_definition)
        near = self.near_solutions[key]
        return f"; {definition!r} has {near!r}, did you mean that?" if near else ""


def _ambiguous(
    name: str, definition: str, chosen: list[Implementation], author: str | None
) -> RejectionError:
    """Which files a trace may have measured, and why its place does not tell."""
    shown = [f"{item.path} (of {item.author_directory!r})" for item in chosen[:_MOST_PLACES]]
    more = f" and {len(chosen) - len(shown)} more" if len(chosen) > len(shown) else ""
    places = f"solution {name!r} of {definition!r} may be {', '.join(shown)}{more}"
    if author is not None:
        return RejectionError(
            Reason.DUPLICATE_SOLUTION,
            f"{places}: their contents differ, and all are of {author!r}, as the trace is",
            "$.solution",
        )
    return RejectionError(
        Reason.AMBIGUOUS_SOLUTION,
        f"{places}: their contents differ, and the trace lies in no folder of one of these authors",
        "$.solution",
    )


def parse(model: type[_Model], document: RawDocument) -> _Model:
    """A typed document from its text.

    Raises:
        RejectionError: no JSON, not an object, or fields that do not fit.
    """
    try:
        return model.model_validate_json(document.data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] != "json_invalid":
            raise _document_rejection(error) from error
        message = explain(document.data)
        if message is None and "recursion limit" in problem["msg"]:
            message = NESTED_TOO_DEEPLY
        if message is not None:
            raise RejectionError(Reason.BAD_JSON, message) from error
    return _parse_leniently(model, document.data)


def _parse_leniently(model: type[_Model], data: bytes) -> _Model:
    # JSON that the strict reader refuses but ECMAScript takes: lone surrogates in strings.
    content = json.loads(data)
    if _depth(content) > _MAX_DEPTH:
        raise RejectionError(Reason.BAD_JSON, NESTED_TOO_DEEPLY)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _document_rejection(error) from error


def _depth(content: object) -> int:
    depth, level = 0, [content]
    while level:
        depth += 1
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return depth


def _document_rejection(error: ValidationError) -> RejectionError:
    problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] in ("model_type", "dict_type") and not problem["loc"]:
        return RejectionError(Reason.NOT_A_DOCUMENT, "the JSON value is not an object")
    return rejection_of(error, Reason.BAD_FIELD)


Parsed = tuple[RawDocument, _Model | RejectionError]
"""A document with what it says, or with why it says nothing."""


def parse_all(model: type[_Model], data: bytes) -> Iterator[Parsed[_Model]]:
    """All documents of a file, good or bad, in order."""
    for item in read_documents(data):
        yield from parse_item(model, item)


def parse_item(model: type[_Model], item: RawDocument | Malformed) -> Iterator[Parsed[_Model]]:
    """What a stretch of a file says: one document, or several where a line holds several."""
    if isinstance(item, Malformed):
        stretch = RawDocument(item.line, item.excerpt.encode())
        reason = Reason.DOCUMENT_TOO_LARGE if item.too_large else Reason.BAD_JSON
        yield stretch, RejectionError(reason, item.message)
        return
    try:
        document = parse(model, item)
    except RejectionError as error:
        pieces = cut_again(item) if error.reason is Reason.BAD_JSON else []
        if len(pieces) > 1:
            for piece in pieces:
                yield from parse_item(model, piece)
        else:
            yield item, error
    else:
        yield item, document


def quarantined(
    error: RejectionError, *, kind: str, path: str, line: int, data: bytes
) -> QuarantinedItem:
    """A rejected document with its place."""
    message = str(error)
    if len(message) > MOST_MESSAGE_CHARACTERS:
        message = f"{message[:MOST_MESSAGE_CHARACTERS]}…"
    return QuarantinedItem(error.reason, kind, path, line, error.json_path, message, excerpt(data))


def too_many_faults(*, kind: str, path: str, line: int, data: bytes) -> QuarantinedItem:
    """What stands for the rest of a file that has more faults than are kept."""
    error = RejectionError(
        Reason.TOO_MANY_FAULTS,
        f"from here on the file was not read: {MOST_FAULTS_A_FILE} of its documents are in "
        "quarantine",
    )
    return quarantined(error, kind=kind, path=path, line=line, data=data)


@dataclass
class CatalogReading:
    """A catalog, what could not be published, and how many documents each file has."""

    catalog: Catalog
    rejected: list[QuarantinedItem] = field(default_factory=list)
    documents: Counter[str] = field(default_factory=Counter)


def read_catalog(
    origin: DatasetOrigin,
    definitions: Iterable[DatasetFile],
    solutions: Iterable[DatasetFile],
    read: ReadFile,
    identity_revision: IdentityRevision,
) -> CatalogReading:
    """Read definitions and solutions."""
    reading = CatalogReading(Catalog(origin))
    for file in definitions:
        reading.documents[file.path] = 0
        faults_before = len(reading.rejected)
        for item, definition in parse_all(Definition, read(file)):
            if _is_given_up(reading, file, item, faults_before, "definition"):
                break
            _read_definition(reading, file, item, definition)
    for file in solutions:
        reading.documents[file.path] = 0
        faults_before = len(reading.rejected)
        for item, solution in parse_all(Solution, read(file)):
            if _is_given_up(reading, file, item, faults_before, "solution"):
                break
            _read_solution(reading, file, item, solution, identity_revision)
    return reading


def _is_given_up(
    reading: CatalogReading, file: DatasetFile, item: RawDocument, faults_before: int, kind: str
) -> bool:
    """Whether a file has so many faults that the rest of it is one more."""
    if len(reading.rejected) - faults_before < MOST_FAULTS_A_FILE:
        return False
    reading.documents[file.path] += 1
    reading.rejected.append(
        too_many_faults(kind=kind, path=file.path, line=item.line, data=item.data)
    )
    return True


def _read_definition(
    reading: CatalogReading,
    file: DatasetFile,
    item: RawDocument,
    definition: Definition | RejectionError,
) -> None:
    catalog = reading.catalog
    reading.documents[file.path] += 1
    try:
        if isinstance(definition, RejectionError):
            raise definition
        operation = operation_of(
            definition, path=file.path, definitions_url=catalog.origin.blob_url("definitions")
        )
        _add_operation(catalog, operation, _located(file, item))
    except RejectionError as error:
        catalog.quarantined_definitions.add(_name_in(item, file.path))
        reading.rejected.append(
            quarantined(error, kind="definition", path=file.path, line=item.line, data=item.data)
        )
    else:
        reading.rejected += _unknown_fields(definition, "definition", file, item)


def _add_operation(catalog: Catalog, operation: Operation, at: Located) -> None:
    known = catalog.operations.get(operation.name)
    if known is not None and (known.digest, known.reference_digest) != (
        operation.digest,
        operation.reference_digest,
    ):
        raise RejectionError(
            Reason.DUPLICATE_DEFINITION,
            f"definition {operation.name!r} is already in {known.path}, with other content",
            "$.name",
        )
    catalog.operations.setdefault(operation.name, operation)
    catalog.operation_rows.append((operation, at))


def _read_solution(
    reading: CatalogReading,
    file: DatasetFile,
    item: RawDocument,
    solution: Solution | RejectionError,
    identity_revision: IdentityRevision,
) -> None:
    catalog = reading.catalog
    reading.documents[file.path] += 1
    try:
        if isinstance(solution, RejectionError):
            raise solution
        implementation = implementation_of(
            solution,
            operation=catalog.operation(solution.definition),
            origin=catalog.origin,
            identity_revision=identity_revision,
            path=file.path,
            author_directory=author_of(file.path) or solution.author or "unknown",
        )
        catalog.implementations.setdefault(solution.name, []).append(implementation)
        catalog.implementation_rows.append((implementation, _located(file, item)))
    except RejectionError as error:
        catalog.quarantined_solutions.add(_name_in(item, file.path))
        reading.rejected.append(
            quarantined(error, kind="solution", path=file.path, line=item.line, data=item.data)
        )
    else:
        reading.rejected += _unknown_fields(solution, "solution", file, item)


def _unknown_fields(
    document: OpenDocument, kind: str, file: DatasetFile, item: RawDocument
) -> Iterator[QuarantinedItem]:
    if unread := document.unread():
        yield QuarantinedItem(
            Reason.UNKNOWN_FIELD,
            kind,
            file.path,
            item.line,
            f"$.{unread[0]}",
            f"not read: {', '.join(unread)}",
            excerpt(item.data),
        )


def _located(file: DatasetFile, item: RawDocument) -> Located:
    return Located(file.path, item.line, sha256_digest(item.data))


def _name_in(item: RawDocument, path: str) -> str:
    """The name of a document that may be no JSON: as it is written, else as its file is called."""
    try:
        name = json.loads(item.data)["name"]
    except (ValueError, RecursionError, TypeError, KeyError):
        written = _NAME.search(item.data)
        name = written[1].decode("utf-8", "replace") if written else None
    return name if isinstance(name, str) else path.rpartition("/")[2].partition(".json")[0]
