"""What traces are resolved against: the operations and implementations of one dataset revision.

Reads definitions and solutions, keeps what could not be published as quarantine, and answers
which implementation a trace measured.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
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
from assets.traces.layout import author_of, world_of
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


Name = tuple[str, str]
"""A name inside the root that it has a meaning in."""


@dataclass
class Catalog:
    """Operations and implementations by root and name, with where each was found.

    Every root of a dataset is a world of its own: the same name may mean something else in
    another one.
    """

    origin: DatasetOrigin
    roots: frozenset[str] = frozenset()
    operations: dict[Name, Operation] = field(default_factory=dict)
    operation_rows: list[tuple[Operation, Located]] = field(default_factory=list)
    implementations: dict[Name, list[Implementation]] = field(default_factory=dict)
    implementation_rows: list[tuple[Implementation, Located]] = field(default_factory=list)
    quarantined_definitions: set[Name] = field(default_factory=set)
    quarantined_solutions: set[Name] = field(default_factory=set)
    near_solutions: dict[tuple[str, str, str], str | None] = field(default_factory=dict)
    """What was proposed for unknown solutions of definitions: many traces name the same one."""

    def world(self, path: str) -> str:
        """The root that a file of the dataset belongs to."""
        return world_of(path, self.roots)

    def operation(self, name: str, root: str) -> Operation:
        """The operation of a definition name.

        Raises:
            RejectionError: where the root has none that could be published.
        """
        operation = self.operations.get((root, name))
        if operation is not None:
            return operation
        if (root, name) in self.quarantined_definitions:
            raise RejectionError(
                Reason.DEFINITION_IN_QUARANTINE,
                f"definition {name!r} is in quarantine",
                "$.definition",
            )
        raise RejectionError(
            Reason.UNKNOWN_DEFINITION,
            f"{root or 'this dataset'} has no definition {name!r}"
            + self._elsewhere(name, root, self.operations, self.quarantined_definitions),
            "$.definition",
        )

    def implementation(self, name: str, definition: str, trace_path: str) -> Implementation:
        """The implementation that a trace of a definition measured.

        Only solutions of the trace's own root are meant; among those of one name the author
        directory of the trace decides.

        Raises:
            RejectionError: where it cannot be told, or is missing.
        """
        root = self.world(trace_path)
        named = self.implementations.get((root, name), [])
        candidates = [item for item in named if item.definition == definition]
        if not candidates:
            raise self._no_implementation(name, definition, root, named)
        author_directory = author_of(trace_path)
        own = [item for item in candidates if item.author_directory == author_directory]
        chosen = own or candidates
        if len({item.digest for item in chosen}) > 1:
            raise _ambiguous(name, definition, chosen, author_directory if own else None)
        return chosen[0]

    def _no_implementation(
        self, name: str, definition: str, root: str, named: list[Implementation]
    ) -> RejectionError:
        if named:
            return RejectionError(
                Reason.SOLUTION_OF_OTHER_DEFINITION,
                f"solution {name!r} implements {named[0].definition!r}, not {definition!r}",
                "$.solution",
            )
        if (root, name) in self.quarantined_solutions:
            return RejectionError(
                Reason.SOLUTION_IN_QUARANTINE, f"solution {name!r} is in quarantine", "$.solution"
            )
        where = f"no file of {root or 'this dataset'} holds solution {name!r}"
        return RejectionError(
            Reason.UNKNOWN_SOLUTION,
            where
            + self._elsewhere(name, root, self.implementations, self.quarantined_solutions)
            + self._proposed(name, definition, root),
            "$.solution",
        )

    def _elsewhere(self, name: str, root: str, *known: Container[Name]) -> str:
        """Where else a name is known, as the end of a message."""
        others = [
            other or "the top folder"
            for other in sorted({"", *self.roots} - {root})
            if any((other, name) in names for names in known)
        ]
        if not others:
            return ""
        return (
            f"; {', '.join(others[:3])} has one, but each root of a dataset is read by itself: "
            "put it beside what refers to it"
        )

    def _proposed(self, name: str, definition: str, root: str) -> str:
        key = root, name, definition
        if key not in self.near_solutions:
            if len(self.near_solutions) >= _MOST_PROPOSED:
                return ""
            of_definition = {
                known
                for (place, known), items in self.implementations.items()
                if place == root and any(item.definition == definition for item in items)
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
    roots: frozenset[str] = frozenset(),
) -> CatalogReading:
    """Read definitions and solutions of the dataset's roots."""
    reading = CatalogReading(Catalog(origin, roots))
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
        name = catalog.world(file.path), _name_in(item, file.path)
        catalog.quarantined_definitions.add(name)
        reading.rejected.append(
            quarantined(error, kind="definition", path=file.path, line=item.line, data=item.data)
        )
    else:
        reading.rejected += _unknown_fields(definition, "definition", file, item)


def _add_operation(catalog: Catalog, operation: Operation, at: Located) -> None:
    name = catalog.world(at.path), operation.name
    known = catalog.operations.get(name)
    if known is not None and (known.digest, known.reference_digest) != (
        operation.digest,
        operation.reference_digest,
    ):
        raise RejectionError(
            Reason.DUPLICATE_DEFINITION,
            f"definition {operation.name!r} is already in {known.path}, with other content",
            "$.name",
        )
    catalog.operations.setdefault(name, operation)
    catalog.operation_rows.append((operation, at))


def _read_solution(
    reading: CatalogReading,
    file: DatasetFile,
    item: RawDocument,
    solution: Solution | RejectionError,
    identity_revision: IdentityRevision,
) -> None:
    catalog = reading.catalog
    root = catalog.world(file.path)
    reading.documents[file.path] += 1
    try:
        if isinstance(solution, RejectionError):
            raise solution
        implementation = implementation_of(
            solution,
            operation=catalog.operation(solution.definition, root),
            origin=catalog.origin,
            identity_revision=identity_revision,
            path=file.path,
            author_directory=author_of(file.path) or solution.author or "unknown",
        )
        catalog.implementations.setdefault((root, solution.name), []).append(implementation)
        catalog.implementation_rows.append((implementation, _located(file, item)))
    except RejectionError as error:
        catalog.quarantined_solutions.add((root, _name_in(item, file.path)))
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
