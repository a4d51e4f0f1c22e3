"""How an entry point wants to be called: outputs handed in or handed back, by name or by place.

FlashInfer-Bench solutions written before 2025-12 do not say. Where the document has
`destination_passing_style` it is obeyed; where not, the entry point's own signature decides.
The source is parsed, never run. Pure standard library.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .documents import Solution


@dataclass(frozen=True)
class Signature:
    """Parameters of an entry point in order; `required` of them have no default."""

    names: tuple[str, ...]
    required: int
    positional: int
    any_positional: bool = False
    any_keyword: bool = False


@dataclass(frozen=True)
class CallConvention:
    """`style` is returns or destination, `arguments` is positional or keyword."""

    style: str
    arguments: str
    decided_by: str
    detail: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def infer_convention(
    solution: Solution, inputs: Sequence[str], outputs: Sequence[str]
) -> CallConvention:
    """Decide how to call a solution whose definition has these input and output names."""
    source = dict(solution.sources)[solution.entry_file]
    if solution.language == "cuda":
        signature = cpp_signature(
            "\n".join(text for _, text in solution.sources), solution.entry_function
        )
    else:
        signature = python_signature(source, solution.entry_function)
    style, decided_by, detail = _style(solution, signature, inputs, outputs)
    wanted = [*inputs, *outputs] if style == "destination" else list(inputs)
    arguments = _arguments(solution.language, signature, wanted)
    return CallConvention(style, arguments, decided_by, detail)


def python_signature(source: str, function: str) -> Signature | None:
    """The signature of a top-level function, following plain aliases; None if there is none."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    functions = {
        node.name: node
        for node in body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    aliases = {
        target.id: node.value.id
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for _ in range(len(aliases) + 1):
        if function in functions:
            return _python_arguments(functions[function].args)
        function = aliases.get(function, function)
    return None


def cpp_signature(source: str, bound_name: str) -> Signature | None:
    """The signature of what a pybind11 module calls `bound_name`; None when not found.

    Reads the C++ as text: the function named in `m.def("bound_name", &function, ...)`, else a
    function of that name. pybind11 passes by place unless `py::arg` names every parameter.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    binding = re.search(
        rf'\.def\(\s*"{re.escape(bound_name)}"\s*,\s*&?\s*([\w:]+)\s*(.*?);', text, re.DOTALL
    )
    function = binding.group(1).split("::")[-1] if binding else bound_name
    named = re.findall(r'arg\(\s*"(\w+)"\s*\)\s*(=?)', binding.group(2)) if binding else []
    parameters = _cpp_parameters(text, function)
    if parameters is None:
        return None
    if any(re.search(r"\bargs\b", part) for part in parameters):
        keywords = any(re.search(r"\bkwargs\b", part) for part in parameters)
        return Signature((), 0, 0, any_positional=True, any_keyword=keywords)
    names = tuple(_cpp_name(part) for part in parameters)
    required = sum("=" not in part for part in parameters)
    if named:
        if len(named) == len(names):
            names = tuple(name for name, _ in named)
        return Signature(names, sum(not default for _, default in named), len(names), False, True)
    # Defaults of the C++ function are lost in a binding without py::arg: all must be given.
    return Signature(names, len(names) if binding else required, len(names))


def _style(
    solution: Solution,
    signature: Signature | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> tuple[str, str, str]:
    stated = solution.destination_passing_style
    if stated is not None:
        style = "destination" if stated else "returns"
        return style, "field", f"destination_passing_style is {str(stated).lower()}"
    if signature is None:
        return "returns", "default", "field absent and no signature found"
    if signature.any_positional:
        return "returns", "signature", "field absent; takes any arguments, so outputs are returned"
    extra = [name for name in signature.names if name not in inputs]
    if signature.required >= len(inputs) + len(outputs):
        return "destination", "signature", f"field absent; requires {', '.join(signature.names)}"
    named = set(outputs) & set(signature.names[: signature.required])
    if named and len(named) == len(outputs):
        return "destination", "signature", f"field absent; requires {', '.join(sorted(named))}"
    optional = f"; {', '.join(extra)} optional" if extra else ""
    return "returns", "signature", f"field absent; takes the inputs only{optional}"


def _arguments(language: str, signature: Signature | None, wanted: Sequence[str]) -> str:
    if signature is None:
        return "positional"
    named = set(wanted) <= set(signature.names)
    if named and (language != "cuda" or signature.any_keyword):
        return "keyword"
    if signature.any_positional and signature.any_keyword:
        return "keyword"  # run(*args, **kwargs): earlier harnesses called these by name
    if signature.any_positional or signature.positional >= len(wanted):
        return "positional"
    return "keyword" if signature.any_keyword else "positional"


def _python_arguments(arguments: ast.arguments) -> Signature:
    positional = [*arguments.posonlyargs, *arguments.args]
    keyword_only = list(arguments.kwonlyargs)
    required = len(positional) - len(arguments.defaults)
    required += sum(default is None for default in arguments.kw_defaults)
    names = [argument.arg for argument in positional] + [a.arg for a in keyword_only]
    if arguments.posonlyargs:
        names = [f"/{name}" for name in names[: len(arguments.posonlyargs)]] + names[
            len(arguments.posonlyargs) :
        ]
    return Signature(
        tuple(names),
        required,
        len(positional),
        arguments.vararg is not None,
        arguments.kwarg is not None,
    )


def _cpp_parameters(text: str, function: str) -> list[str] | None:
    for match in re.finditer(rf"[\w>&\*]\s+{re.escape(function)}\s*\(", text):
        inside, depth, parts, end = "", 1, [], match.end()
        while end < len(text) and depth:
            character = text[end]
            depth += (character in "(<{[") - (character in ")>}]")
            if depth and character == "," and depth == 1:
                parts.append(inside)
                inside = ""
            elif depth:
                inside += character
            end += 1
        if re.match(r"\s*(const)?\s*(noexcept)?\s*(->[^{;]*)?[{;]", text[end:]):
            parts.append(inside)
            return [" ".join(part.split()) for part in parts if part.strip()]
    return None


def _cpp_name(parameter: str) -> str:
    words = re.findall(r"\w+", parameter.split("=")[0])
    return words[-1] if words else ""
