"""Workload entries become WorkloadCase manifests."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from assets.manifests import names
from assets.manifests.axes import ExpressionError, evaluate
from assets.manifests.canonical import canonical_json, canonical_number, sha256_digest
from assets.manifests.kinds import (
    Manifest,
    Metadata,
    TensorData,
    WorkloadCase,
    WorkloadCorrectness,
    WorkloadScalar,
    WorkloadTensor,
)
from assets.manifests.operations import Operation, integer
from assets.manifests.quarantine import Reason, RejectionError
from assets.manifests.rejections import rejection_of
from assets.traces.documents import InputDescriptor, Workload

# The public index names this comparator for every case, whatever harness it came from, so that
# digests stay as they are.
COMPARATOR = "sol_execbench_eval"
_TITLE_LENGTH = 200
_NAME_PART = re.compile(r"[a-z0-9._-]+\Z")


@dataclass(frozen=True)
class Case:
    """A workload with its manifest.

    `uuid` is what upstream gives, `external_id` the same or, without one, a short digest of the
    axes.
    `input_fingerprint` is the digest of where every input comes from, tensor files included,
    which identity ignores: cases that differ only in it are ranked apart by ranking-v2.
    """

    manifest: Manifest
    external_id: str
    input_fingerprint: str
    definition: str
    uuid: str | None

    @cached_property
    def digest(self) -> str:
        """The workload digest."""
        return self.manifest.digest

    @cached_property
    def correctness_key(self) -> str:
        """Digest of the correctness rules alone."""
        return correctness_key(self.manifest.spec["correctness"])

    @cached_property
    def run_name(self) -> str:
        """The editorial name that runs of this case have."""
        return names.kebab(f"sol-trace-{self.definition}-{self.external_id[:8]}")

    @cached_property
    def axes_json(self) -> str:
        """Sizes by axis."""
        return canonical_json(self.manifest.spec["axes"])

    @cached_property
    def axes_label(self) -> str:
        """Sizes by axis, to be read."""
        return ", ".join(f"{name}={value}" for name, value in self.manifest.spec["axes"].items())

    @cached_property
    def shape_summary(self) -> str:
        """Shape of the first tensor, e.g. `[1, 16, 512]`."""
        for tensor in self.manifest.spec["tensors"].values():
            return f"[{', '.join(map(str, tensor['shape']))}]"
        return "[]"

    @cached_property
    def dtypes(self) -> list[str]:
        """Dtypes of the tensors, sorted."""
        return sorted({tensor["dtype"] for tensor in self.manifest.spec["tensors"].values()})

    @cached_property
    def layout_keys(self) -> list[str]:
        """Layouts of the tensors, sorted."""
        tensors = self.manifest.spec["tensors"].values()
        return sorted({layout_key(tensor["shape"]) for tensor in tensors})

    @cached_property
    def generators(self) -> list[str]:
        """Where tensor contents come from, sorted."""
        return sorted(
            {
                tensor["data"]["generator"]
                for tensor in self.manifest.spec["tensors"].values()
                if "data" in tensor
            }
        )


def correctness_key(correctness: Mapping[str, object]) -> str:
    """Digest of the correctness part of a workload spec."""
    return sha256_digest(canonical_json({"correctness": correctness}))


def layout_key(shape: Sequence[int], strides: Sequence[int] | None = None) -> str:
    """How a tensor lies in memory: `contiguous` where no strides are stated, as upstream does.

    Strides are in elements: `row_major` if they are those of a packed row-major tensor, else
    `strided`.
    """
    if strides is None:
        return "contiguous"
    packed, size = [], 1
    for extent in reversed(shape):
        packed.append(size)
        size *= extent
    return "row_major" if list(strides) == packed[::-1] else "strided"


def entry_key(workload: Workload) -> str:
    """The uuid, else twelve hex digits of the digest of the axes in collation order.

    Raises:
        RejectionError: without a uuid, for an axis that is bound to no integer.
    """
    if workload.uuid:
        return workload.uuid
    for name, value in workload.axes.items():
        integer(value, f"$.workload.axes.{name}", Reason.BAD_AXIS_VALUE)
    ordered = {name: workload.axes[name] for name in sorted(workload.axes, key=names.collation_key)}
    text = ",".join(
        f"{json.dumps(name, ensure_ascii=False)}:{canonical_number(value)}"
        for name, value in names.document_order(ordered)
    )
    return sha256_digest(f"{{{text}}}")[7:19]


def input_fingerprint(workload: Workload) -> str:
    """Digest of the input descriptors: kind, scalar value, tensor file and key.

    Raises:
        RejectionError: for a scalar without a finite value.
    """
    for name, descriptor in (workload.inputs or {}).items():
        value = descriptor.value
        if descriptor.type == "scalar" and "value" in descriptor.model_fields_set and value is None:
            raise RejectionError(
                Reason.BAD_INPUT,
                f"workload.inputs.{name}.value is null; a scalar input needs a number",
                f"$.workload.inputs.{name}.value",
            )
        if value is not None and not math.isfinite(value):
            raise RejectionError(
                Reason.BAD_INPUT,
                f"workload.inputs.{name}.value is {value!r}; a scalar input is a finite number",
                f"$.workload.inputs.{name}.value",
            )
    inputs = {
        name: {
            "type": descriptor.type,
            "value": descriptor.value,
            # `./blob/x` and `blob/x` are one file.
            "path": descriptor.path and descriptor.path.removeprefix("./"),
            "tensor_key": descriptor.tensor_key,
        }
        for name, descriptor in (workload.inputs or {}).items()
    }
    return sha256_digest(canonical_json(inputs))


def case_of(workload: Workload, operation: Operation) -> Case:
    """The case that a workload entry of an operation is.

    Raises:
        RejectionError: unbound or impossible axes, unusable inputs.
    """
    axes = _bound_axes(workload)
    bindings = _bindings(axes, operation)
    tensors: dict[str, WorkloadTensor] = {}
    scalars: dict[str, WorkloadScalar] = {}
    key = entry_key(workload)
    try:
        for argument in operation.inputs:
            descriptor = (workload.inputs or {}).get(argument.document_name)
            value = descriptor.value if descriptor and descriptor.type == "scalar" else None
            if value is not None and not isinstance(value, bool):
                scalars[argument.name] = WorkloadScalar(dtype=argument.dtype, value=value)
            elif argument.shape is not None:
                tensors[argument.name] = WorkloadTensor(
                    shape=[_size(entry, bindings, argument.name) for entry in argument.shape],
                    dtype=argument.dtype,
                    data=_tensor_data(descriptor),
                )
        tolerance = workload.tolerance
        manifest = Manifest.of(
            WorkloadCase(
                operation_spec_digest=operation.digest,
                axes=axes,
                tensors=tensors,
                scalars=scalars or None,
                correctness=WorkloadCorrectness(
                    comparator=COMPARATOR,
                    max_absolute_error=tolerance.max_atol if tolerance else None,
                    max_relative_error=tolerance.max_rtol if tolerance else None,
                ),
            ),
            Metadata(name=_name(operation, key), title=_title(operation.name, workload)),
        )
    except ValidationError as error:
        raise rejection_of(error, Reason.BAD_INPUT, "$.workload") from error
    return Case(manifest, key, input_fingerprint(workload), operation.name, workload.uuid)


def _tensor_data(descriptor: InputDescriptor | None) -> TensorData | None:
    if descriptor is None:
        return None
    return TensorData(generator="safetensors" if descriptor.type == "safetensors" else "random")


def _bound_axes(workload: Workload) -> dict[str, int]:
    axes: dict[str, int] = {}
    for document_name, value in workload.axes.items():
        at = f"$.workload.axes.{document_name}"
        name = names.axis_name(document_name)
        if not names.TOKEN.match(name):
            raise RejectionError(
                Reason.BAD_AXIS, f"axis name {document_name!r} is no identifier", at
            )
        if name in axes:
            raise RejectionError(
                Reason.NAME_COLLISION, f"two axes are both {name!r} in lower case", at
            )
        axes[name] = integer(value, at, Reason.BAD_AXIS_VALUE)
    return axes


def _bindings(axes: dict[str, int], operation: Operation) -> dict[str, int]:
    bindings = {**axes, **operation.constants}
    for name, expression in operation.expressions:
        if name in bindings:
            continue
        try:
            bindings[name] = evaluate(expression, bindings)
        except ExpressionError as error:
            raise RejectionError(
                Reason.BAD_EXPRESSION, f"axis {name!r}: {error}", f"$.workload.axes.{name}"
            ) from error
    return bindings


def _size(entry: int | str, bindings: dict[str, int], argument: str) -> int:
    if isinstance(entry, int):
        return entry
    size = bindings.get(entry)
    if size is None:
        raise RejectionError(
            Reason.BAD_AXIS_VALUE,
            f"axis {entry!r}, which the shape of {argument!r} needs, is not bound",
            f"$.workload.axes.{entry}",
        )
    if size < 0:
        raise RejectionError(
            Reason.BAD_AXIS_VALUE,
            f"axis {entry!r} is {size}, and the shape of {argument!r} needs a size",
            f"$.workload.axes.{entry}",
        )
    return size


def _name(operation: Operation, key: str) -> str:
    # A uuid may have characters that a manifest's name may not; only this name is affected.
    short = key[:8]
    if not _NAME_PART.match(short):
        short = names.kebab(short) or "case"
    return f"{operation.slug}-{short}"


def _title(definition: str, workload: Workload) -> str:
    axes = ", ".join(
        f"{name}={canonical_number(value)}" for name, value in names.document_order(workload.axes)
    )
    title = f"{definition} · {axes}"
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
