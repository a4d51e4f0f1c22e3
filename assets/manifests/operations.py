"""Definitions become OperationSpec manifests, and know what workloads need of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from assets.manifests import names
from assets.manifests.axes import MAX_SAFE_INTEGER, ExpressionError, dimension
from assets.manifests.canonical import canonical_string, sha256_digest
from assets.manifests.kinds import (
    Argument,
    AxisSpec,
    Manifest,
    Metadata,
    OperationSpec,
    Reference,
    ScalarSpec,
    SourceReference,
    TensorSpec,
)
from assets.manifests.quarantine import Reason, RejectionError
from assets.manifests.rejections import rejection_of
from assets.traces.documents import Axis, Definition, Tensor

NO_REFERENCE_DIGEST = sha256_digest("")


@dataclass(frozen=True)
class OperationArgument:
    """An argument as a workload binds it.

    Its name in the document, its token, its shape (None for a scalar) and its dtype token.
    """

    document_name: str
    name: str
    shape: tuple[int | str, ...] | None
    dtype: str


@dataclass(frozen=True)
class Operation:
    """A definition with its manifest and what its workloads are bound by.

    `reference_digest` is the digest of the reference source, which identity ignores: operations
    that differ only in it never share a ranking-v2 group.
    """

    name: str
    manifest: Manifest
    slug: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    family: str
    constants: Mapping[str, int]
    expressions: tuple[tuple[str, str], ...]
    inputs: tuple[OperationArgument, ...]
    outputs: tuple[OperationArgument, ...]
    reference_digest: str
    reference: str | None
    path: str

    @cached_property
    def digest(self) -> str:
        """The operation digest."""
        return self.manifest.digest

    @cached_property
    def name_json(self) -> str:
        """The name as canonical JSON writes it; every run of the operation holds it."""
        return canonical_string(self.name)

    @cached_property
    def dtypes(self) -> list[str]:
        """Input dtypes, in argument order, as `support.dtypes` of an implementation takes them."""
        return [argument.dtype for argument in self.inputs]


def operation_of(definition: Definition, *, path: str, definitions_url: str | None) -> Operation:
    """The operation that a definition states.

    Raises:
        RejectionError: for what the manifest cannot hold.
    """
    _reject_nul(definition)
    slug = names.kebab(definition.name)
    if not slug:
        raise RejectionError(
            Reason.BAD_NAME, f"name {definition.name!r} leaves no identifier", "$.name"
        )
    family = names.family_of(definition.op_type, definition.tags or [])
    if not family:
        raise RejectionError(
            Reason.BAD_NAME, f"op_type {definition.op_type!r} leaves no identifier", "$.op_type"
        )
    axes, constants = _axes(definition.axes)
    inputs = _arguments(definition.inputs, constants, axes, "inputs")
    outputs = _arguments(definition.outputs, constants, axes, "outputs")
    try:
        manifest = Manifest.of(
            OperationSpec(
                family=family,
                axes=axes,
                inputs=[_argument_spec(argument) for argument in inputs],
                outputs=[_argument_spec(argument) for argument in outputs],
                reference=Reference() if definition.reference else None,
            ),
            Metadata(
                name=slug,
                title=definition.name,
                description=definition.description,
                source_refs=[SourceReference(url=definitions_url)] if definitions_url else None,
            ),
        )
    except ValidationError as error:
        raise rejection_of(error, Reason.BAD_FIELD) from error
    return Operation(
        name=definition.name,
        manifest=manifest,
        slug=slug,
        aliases=(definition.name.lower(),),
        tags=tuple(names.taxonomy_tags(definition.tags or [])),
        family=family,
        constants=constants,
        expressions=tuple(
            (names.axis_name(name), axis.expression.lower())
            for name, axis in names.document_order(definition.axes)
            if axis.type == "expr" and axis.expression
        ),
        inputs=inputs,
        outputs=outputs,
        reference_digest=sha256_digest(definition.reference or ""),
        reference=definition.reference or None,
        path=path,
    )


def _reject_nul(definition: Definition) -> None:
    for field in ("name", "op_type", "description", "reference"):
        if "\x00" in (getattr(definition, field) or ""):
            raise RejectionError(
                Reason.NUL_CHARACTER, f"{field} holds a NUL character", f"$.{field}"
            )


def _axes(axes: Mapping[str, Axis]) -> tuple[dict[str, AxisSpec], dict[str, int]]:
    specs: dict[str, AxisSpec] = {}
    constants: dict[str, int] = {}
    for document_name, axis in axes.items():
        name, at = names.axis_name(document_name), f"$.axes.{document_name}"
        if not names.TOKEN.match(name):
            raise RejectionError(
                Reason.BAD_AXIS, f"axis name {document_name!r} is no identifier", at
            )
        if name in specs:
            raise RejectionError(
                Reason.NAME_COLLISION,
                f"axis {document_name!r} and another axis are both {name!r} in lower case",
                at,
            )
        specs[name] = _axis_spec(axis, at)
        if axis.type == "const":
            constants[name] = integer(axis.value, at)
    return specs, constants


def _axis_spec(axis: Axis, at: str) -> AxisSpec:
    try:
        if axis.type == "const":
            if axis.value is None:
                raise RejectionError(Reason.BAD_AXIS, f"{at[2:]}: a constant needs a value", at)
            return AxisSpec(role="constant", value=integer(axis.value, at))
        if axis.type == "expr":
            if not axis.expression:
                raise RejectionError(
                    Reason.BAD_AXIS, f"{at[2:]}: a derived axis needs an expression", at
                )
            return AxisSpec(role="derived", expression=axis.expression.lower())
    except ValidationError as error:
        raise rejection_of(error, Reason.BAD_AXIS, at) from error
    return AxisSpec(role="variable")


def integer(value: float | None, at: str, reason: Reason = Reason.BAD_AXIS) -> int:
    """A JSON number as an integer below 2**53; `4.0` and `4e0` are 4.

    Raises:
        RejectionError: with `reason`, for anything else.
    """
    whole = value is not None and (isinstance(value, int) or value.is_integer())
    if value is None or not whole or abs(value) > MAX_SAFE_INTEGER:
        raise RejectionError(reason, f"{at[2:]} is {value!r}; expected an integer below 2**53", at)
    return int(value)


def _arguments(
    tensors: dict[str, Tensor], constants: Mapping[str, int], axes: Collection[str], field: str
) -> tuple[OperationArgument, ...]:
    if not tensors:
        raise RejectionError(Reason.MISSING_FIELD, f"{field} is empty", f"$.{field}")
    arguments: dict[str, OperationArgument] = {}
    for document_name, tensor in names.document_order(tensors):
        at = f"$.{field}.{document_name}"
        name = names.argument_name(document_name)
        if name in arguments:
            raise RejectionError(
                Reason.NAME_COLLISION, f"two {field} are both named {name!r} as identifiers", at
            )
        dtype = names.map_dtype(tensor.dtype)
        if not names.TOKEN.match(dtype):
            raise RejectionError(
                Reason.BAD_DTYPE, f"dtype {tensor.dtype!r} is no identifier", f"{at}.dtype"
            )
        arguments[name] = OperationArgument(
            document_name, name, _shape(tensor.shape, constants, axes, at), dtype
        )
    return tuple(arguments.values())


def _shape(
    shape: list[str | int | float] | None,
    constants: Mapping[str, int],
    axes: Collection[str],
    at: str,
) -> tuple[int | str, ...] | None:
    if not shape:
        return None
    return tuple(
        _dimension(entry, constants, axes, f"{at}.shape[{index}]")
        for index, entry in enumerate(shape)
    )


def _dimension(
    entry: str | float, constants: Mapping[str, int], axes: Collection[str], at: str
) -> int | str:
    try:
        bound = dimension(
            entry if isinstance(entry, str) else integer(entry, at, Reason.BAD_SHAPE),
            constants,
            axes,
        )
    except ExpressionError as error:
        raise RejectionError(Reason.BAD_SHAPE, f"shape entry {entry!r}: {error}", at) from error
    if isinstance(bound, int) and bound < 0:
        raise RejectionError(Reason.BAD_SHAPE, f"shape entry {bound} is negative", at)
    return bound


def _argument_spec(argument: OperationArgument) -> Argument:
    if argument.shape is None:
        return Argument(name=argument.name, scalar=ScalarSpec(dtype=argument.dtype))
    return Argument(
        name=argument.name,
        tensor=TensorSpec(shape=list(argument.shape), dtype=argument.dtype),
    )
