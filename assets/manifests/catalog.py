"""What traces are resolved against: the operations and implementations of one dataset revision.

Reads definitions and solutions, keeps what could not be published as quarantine, and answers
which implementation a trace measured.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from assets.manifests.operations import Operation, operation_of
from assets.manifests.quarantine import QuarantinedItem, Reason, RejectionError, Severity
from assets.manifests.rejections import rejection_of
from assets.traces.documents import Definition, Document, Solution
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
            places = ", ".join(item.path for item in chosen)
            raise RejectionError(
                Reason.DUPLICATE_SOLUTION if own else Reason.AMBIGUOUS_SOLUTION,
                f"solution {name!r} of {definition!r} is in {places}",
                "$.solution",
            )
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
            f"no file of this dataset holds solution {name!r}",
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
    try:
        return model.model_validate(json.loads(data))
    except ValidationError as error:
        raise _document_rejection(error) from error


def _document_rejection(error: ValidationError) -> RejectionError:
    problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] in ("model_type", "dict_type") and not problem["loc"]:
        return RejectionError(Reason.NOT_A_DOCUMENT, "the JSON value is not an object")
    return rejection_of(error, Reason.BAD_FIELD)


def quarantined(
    error: RejectionError, *, kind: str, path: str, line: int, data: bytes
) -> QuarantinedItem:
    """A rejected document with its place."""
    return QuarantinedItem(
        error.reason, Severity.ERROR, kind, path, line, error.json_path, str(error), excerpt(data)
    )


def malformed(item: Malformed, *, kind: str, path: str) -> QuarantinedItem:
    """A stretch that is no JSON, with its place."""
    return QuarantinedItem(
        Reason.BAD_JSON, Severity.ERROR, kind, path, item.line, "$", item.message, item.excerpt
    )


@dataclass(frozen=True)
class Placed:
    """One document of a definition or solution file."""

    file: DatasetFile
    document: RawDocument


def build_catalog(
    origin: DatasetOrigin,
    definitions: Iterable[Placed],
    solutions: Iterable[Placed],
    identity_revision: IdentityRevision,
) -> tuple[Catalog, list[QuarantinedItem]]:
    """Read definitions and solutions; whatever cannot be published comes back beside."""
    catalog = Catalog(origin)
    rejected = [*_read_definitions(catalog, definitions)]
    rejected += _read_solutions(catalog, solutions, identity_revision)
    return catalog, rejected


def _read_definitions(catalog: Catalog, placed: Iterable[Placed]) -> Iterator[QuarantinedItem]:
    url = catalog.origin.blob_url("definitions")
    for item in placed:
        name = ""
        try:
            definition = parse(Definition, item.document)
            name = definition.name
            operation = operation_of(definition, path=item.file.path, definitions_url=url)
            _add_operation(catalog, operation, item)
        except RejectionError as error:
            catalog.quarantined_definitions.add(name or _stem(item.file.path))
            yield _rejected(error, "definition", item)
        else:
            yield from _unknown_fields(definition.model_extra or {}, "definition", item)


def _add_operation(catalog: Catalog, operation: Operation, item: Placed) -> None:
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
    catalog.operation_rows.append((operation, _located(item)))


def _read_solutions(
    catalog: Catalog, placed: Iterable[Placed], identity_revision: IdentityRevision
) -> Iterator[QuarantinedItem]:
    for item in placed:
        name = ""
        try:
            solution = parse(Solution, item.document)
            name = solution.name
            implementation = implementation_of(
                solution,
                operation=catalog.operation(solution.definition),
                origin=catalog.origin,
                identity_revision=identity_revision,
                path=item.file.path,
                author_directory=author_of(item.file.path) or solution.author or "unknown",
            )
            catalog.implementations.setdefault(name, []).append(implementation)
            catalog.implementation_rows.append((implementation, _located(item)))
        except RejectionError as error:
            catalog.quarantined_solutions.add(name or _stem(item.file.path))
            yield _rejected(error, "solution", item)
        else:
            extra = {**(solution.model_extra or {}), **_spec_extra(solution)}
            yield from _unknown_fields(extra, "solution", item)


def _spec_extra(solution: Solution) -> dict[str, object]:
    extra = (solution.spec.model_extra if solution.spec else None) or {}
    return {f"spec.{name}": value for name, value in extra.items()}


def _unknown_fields(
    extra: Mapping[str, object], kind: str, item: Placed
) -> Iterator[QuarantinedItem]:
    if extra:
        yield QuarantinedItem(
            Reason.UNKNOWN_FIELD,
            Severity.WARNING,
            kind,
            item.file.path,
            item.document.line,
            f"$.{next(iter(extra))}",
            f"not read: {', '.join(extra)}",
            excerpt(item.document.data),
        )


def _rejected(error: RejectionError, kind: str, item: Placed) -> QuarantinedItem:
    return quarantined(
        error,
        kind=kind,
        path=item.file.path,
        line=item.document.line,
        data=item.document.data,
    )


def _located(item: Placed) -> Located:
    return Located(item.file.path, item.document.line, sha256_digest(item.document.data))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".json")[0]


def documents_of(
    files: Iterable[DatasetFile], read: ReadFile, kind: str
) -> tuple[list[Placed], list[QuarantinedItem], dict[str, int]]:
    """All documents of some files, what of them is no JSON, and how many items each file has."""
    placed: list[Placed] = []
    rejected: list[QuarantinedItem] = []
    counts: dict[str, int] = {}
    for file in files:
        counts[file.path] = 0
        for item in read_documents(read(file)):
            counts[file.path] += 1
            if isinstance(item, Malformed):
                rejected.append(malformed(item, kind=kind, path=file.path))
            else:
                placed.append(Placed(file, item))
    return placed, rejected, counts
