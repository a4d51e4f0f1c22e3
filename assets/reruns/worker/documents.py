"""From FlashInfer-Bench documents to what a measurement needs: tensors in, tensors out, sources.

Pure standard library. A candidate's process is given a `Problem` and a `Solution`, never the
definition document, so that the reference's source is not in its memory.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

#: Data types that torch can hold by that name; sizes in bytes per element.
DTYPE_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}

#: Earlier spellings (FlashInfer-Bench before 2025-10).
DTYPE_ALIASES = {"float8_e4m3": "float8_e4m3fn"}

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class DocumentError(Exception):
    """A definition, workload or solution that this worker cannot work with."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class InputSpec:
    """One input. `source` is random, scalar (with `value`) or tensor (with `path` and `key`)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    value: float | int | bool | None = None
    path: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class OutputSpec:
    """One output: shape in elements and data type."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Problem:
    """What goes in and what must come out, with every axis resolved to a number."""

    definition: str
    op_type: str
    axes: dict[str, int]
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]

    def document(self) -> dict[str, Any]:
        """As JSON, for the way into a child process."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Problem":
        """The inverse of `document`."""
        return cls(
            definition=document["definition"],
            op_type=document["op_type"],
            axes=dict(document["axes"]),
            inputs=tuple(
                InputSpec(**{**entry, "shape": tuple(entry["shape"])})
                for entry in document["inputs"]
            ),
            outputs=tuple(
                OutputSpec(**{**entry, "shape": tuple(entry["shape"])})
                for entry in document["outputs"]
            ),
        )


@dataclass(frozen=True)
class Solution:
    """The parts of a solution document that matter for building and calling it."""

    name: str
    author: str
    language: str
    entry_file: str
    entry_function: str
    sources: tuple[tuple[str, str], ...]
    binding: str | None
    destination_passing_style: bool | None


def size_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of a dense tensor."""
    count = 1
    for extent in shape:
        count *= extent
    return count * DTYPE_BYTES[dtype]


def problem_of(
    definition: Mapping[str, Any], workload: Mapping[str, Any], tensors: Mapping[str, str]
) -> Problem:
    """Resolve a definition with a workload's axes and inputs.

    `tensors` maps a tensor file's name, as the workload spells it, to where it lies. Accepts a
    bare workload or a whole workload row. Raises `DocumentError` (UNSUPPORTED_WORKLOAD,
    MISSING_TENSOR) when an axis, shape, data type or input cannot be resolved.
    """
    if "workload" in workload:
        workload = workload["workload"]
    try:
        axes = _axes(definition, workload)
        inputs = tuple(
            _input(name, spec, axes, workload.get("inputs", {}).get(name), tensors)
            for name, spec in definition["inputs"].items()
        )
        outputs = tuple(
            OutputSpec(name, _shape(spec["shape"], axes), _dtype(spec["dtype"]))
            for name, spec in definition["outputs"].items()
        )
        name = str(definition["name"])
    except (KeyError, TypeError, AttributeError) as error:
        detail = f"The documents lack or misuse {error}."
        raise DocumentError("UNSUPPORTED_WORKLOAD", detail) from error
    op_type = str(definition.get("op_type") or definition.get("type") or "")
    return Problem(name, op_type, axes, inputs, outputs)


def reference_source(definition: Mapping[str, Any]) -> str:
    """The reference's Python source; raises `DocumentError` (REFERENCE_FAILED) without one."""
    source = definition.get("reference")
    if not isinstance(source, str) or not source.strip():
        raise DocumentError("REFERENCE_FAILED", "The definition has no reference source.")
    return source


def solution_of(document: Mapping[str, Any]) -> Solution:
    """Read a solution of any schema version.

    Raises `DocumentError` (ENTRY_POINT_MISSING, UNSAFE_SOURCE_PATH).
    """
    try:
        spec = document["spec"]
        sources = tuple((str(part["path"]), str(part["content"])) for part in document["sources"])
        entry = str(spec["entry_point"])
        language = str(spec["language"]).lower()
    except (KeyError, TypeError) as error:
        raise DocumentError("ENTRY_POINT_MISSING", f"The solution lacks {error}.") from error
    for path, _ in sources:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\x00" in path or not pure.parts:
            raise DocumentError("UNSAFE_SOURCE_PATH", f"The path is {path!r}.")
    entry_file, separator, entry_function = entry.rpartition("::")
    if not separator or entry_file not in {path for path, _ in sources}:
        raise DocumentError("ENTRY_POINT_MISSING", f"The entry point is {entry!r}.")
    style = spec.get("destination_passing_style")
    return Solution(
        name=str(document.get("name", "")),
        author=str(document.get("author", "")),
        language=language,
        entry_file=entry_file,
        entry_function=entry_function,
        sources=sources,
        binding=spec.get("binding"),
        destination_passing_style=style if isinstance(style, bool) else None,
    )


def _axes(definition: Mapping[str, Any], workload: Mapping[str, Any]) -> dict[str, int]:
    values = {name: int(value) for name, value in workload.get("axes", {}).items()}
    pending: dict[str, str] = {}
    for name, axis in definition["axes"].items():
        if axis["type"] == "const":
            values[name] = int(axis["value"])
        elif axis["type"] == "expr":
            pending[name] = str(axis["expression"])
    for _ in range(len(pending)):
        for name, expression in list(pending.items()):
            try:
                values[name] = _evaluate(expression, values)
            except DocumentError:
                continue
            del pending[name]
    return values


def _shape(shape: Any, axes: Mapping[str, int]) -> tuple[int, ...]:
    if shape is None:
        return ()
    extents = []
    for extent in shape:
        value = extent if isinstance(extent, int) else _evaluate(str(extent), axes)
        if value < 0:
            raise DocumentError("UNSUPPORTED_WORKLOAD", f"Axis {extent!r} is {value}.")
        extents.append(value)
    return tuple(extents)


def _evaluate(expression: str, axes: Mapping[str, int]) -> int:
    """The value of an axis name or of an expression of names, integers and + - * / // %."""

    def value_of(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in axes:
            return axes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))
        raise DocumentError("UNSUPPORTED_WORKLOAD", f"No value for {expression!r}.")

    try:
        return value_of(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise DocumentError("UNSUPPORTED_WORKLOAD", f"No value for {expression!r}.") from error


def _dtype(name: Any) -> str:
    dtype = DTYPE_ALIASES.get(str(name), str(name))
    if dtype not in DTYPE_BYTES:
        raise DocumentError("UNSUPPORTED_WORKLOAD", f"Data type {name!r} is not supported.")
    return dtype


def _input(
    name: str,
    spec: Mapping[str, Any],
    axes: Mapping[str, int],
    given: Mapping[str, Any] | None,
    tensors: Mapping[str, str],
) -> InputSpec:
    shape, dtype = _shape(spec["shape"], axes), _dtype(spec["dtype"])
    if given is None:
        if spec.get("optional"):
            return InputSpec(name, shape, dtype, "scalar", value=None)
        raise DocumentError("UNSUPPORTED_WORKLOAD", f"The workload gives nothing for {name!r}.")
    kind = given.get("type") or given.get("format")
    if kind == "random":
        return InputSpec(name, shape, dtype, "random")
    if kind == "scalar":
        return InputSpec(name, shape, dtype, "scalar", value=given["value"])
    if kind == "safetensors":
        path = str(given["path"])
        if path not in tensors:
            raise DocumentError("MISSING_TENSOR", f"{path} is not in the bundle.")
        return InputSpec(
            name, shape, dtype, "tensor", path=tensors[path], key=str(given["tensor_key"])
        )
    raise DocumentError("UNSUPPORTED_WORKLOAD", f"Input {name!r} has the unknown type {kind!r}.")
