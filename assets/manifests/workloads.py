"""Workload entries become WorkloadCase manifests."""

import json
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
from assets.traces.documents import Workload

# The public index names this comparator for every case, whatever harness it came from, so that
# digests stay as they are.
COMPARATOR = "sol_execbench_eval"
_TITLE_LENGTH = 200


@dataclass(frozen=True)
class Case:
    """A workload with its manifest.

    `external_id` is the uuid, or a short digest of the axes where there is none.
    `input_fingerprint` is the digest of where every input comes from, tensor files included,
    which identity ignores: cases that differ only in it are ranked apart by ranking-v2.
    """

    manifest: Manifest
    external_id: str
    input_fingerprint: str
    definition: str

    @cached_property
    def digest(self) -> str:
        """The workload digest."""
        return self.manifest.digest

    @cached_property
    def correctness_key(self) -> str:
        """Digest of the correctness rules alone."""
        return sha256_digest(canonical_json({"correctness": self.manifest.spec["correctness"]}))

    @property
    def shape_summary(self) -> str:
        """Shape of the first tensor, e.g. `[1, 16, 512]`."""
        for tensor in self.manifest.spec["tensors"].values():
            return f"[{', '.join(map(str, tensor['shape']))}]"
        return "[]"

    @property
    def dtypes(self) -> list[str]:
        """Dtypes of the tensors, sorted."""
        return sorted({tensor["dtype"] for tensor in self.manifest.spec["tensors"].values()})

    @property
    def layout_keys(self) -> list[str]:
        """Layouts of the tensors; upstream states no strides, so all are contiguous."""
        return ["contiguous"] if self.manifest.spec["tensors"] else []

    @property
    def generators(self) -> list[str]:
        """Where tensor contents come from, sorted."""
        return sorted(
            {
                tensor["data"]["generator"]
                for tensor in self.manifest.spec["tensors"].values()
                if "data" in tensor
            }
        )


def entry_key(workload: Workload) -> str:
    """The uuid, else twelve hex digits of the digest of the axes in collation order."""
    if workload.uuid:
        return workload.uuid
    ordered = {name: workload.axes[name] for name in sorted(workload.axes, key=names.collation_key)}
    text = ",".join(
        f"{json.dumps(name, ensure_ascii=False)}:{canonical_number(value)}"
        for name, value in names.document_order(ordered)
    )
    return sha256_digest(f"{{{text}}}")[7:19]


def input_fingerprint(workload: Workload) -> str:
    """Digest of the input descriptors: kind, scalar value, tensor file and key."""
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
                    data=descriptor
                    and TensorData(
                        generator="safetensors" if descriptor.type == "safetensors" else "random"
                    ),
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
    return Case(manifest, key, input_fingerprint(workload), operation.name)


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
    # Upper case and other characters are allowed in a uuid but not in a manifest's name.
    return f"{operation.slug}-{names.kebab(key[:8]) or 'case'}"


def _title(definition: str, workload: Workload) -> str:
    axes = ", ".join(
        f"{name}={canonical_number(value)}" for name, value in names.document_order(workload.axes)
    )
    title = f"{definition} · {axes}"
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
