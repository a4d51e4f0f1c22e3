"""Turn a pydantic error into one rejection that names the field and what is wrong with it."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from assets.manifests.quarantine import Reason, RejectionError

# Names of union branches that pydantic puts into a location; they are not part of the document.
# Errors of the second kind of branch only say that the first was meant.
_BRANCHES = frozenset({"Evaluation", "str", "float", "bool"})
_OTHER_BRANCHES = frozenset({"NotEvaluated"})
_LENGTH_TYPES = frozenset({"string_too_long", "too_long"})
_MOST_NAMES = 5

# Where a field of a manifest comes from in the document, by model and field. A field that is not
# listed is called the same in both.
_DOCUMENT_FIELDS = {
    ("Metadata", "name"): "name",
    ("Metadata", "title"): "name",
    ("Metadata", "authors"): "author",
    ("Author", "name"): "author",
    ("SoftwareProject", "name"): "author",
    ("SoftwareProject", "repository"): "author",
    ("SourceContent", "file_name"): "sources.path",
    ("SourceContent", "size_bytes"): "sources.content",
    ("Callable", "path"): "sources.path",
    ("Callable", "symbol"): "spec.entry_point",
    ("Callable", "language"): "spec.language",
    ("Support", "hardware_architectures"): "spec.target_hardware",
    ("Support", "products_tested"): "spec.target_hardware",
    ("EnvironmentHardware", "product"): "hardware",
    ("EnvironmentSoftware", "cuda_toolkit"): "libs.cuda",
    ("EnvironmentSoftware", "libraries"): "libs",
    ("Framework", "version"): "libs.torch",
    ("WorkloadCorrectness", "max_absolute_error"): "tolerance.max_atol",
    ("WorkloadCorrectness", "max_relative_error"): "tolerance.max_rtol",
    ("WorkloadScalar", "value"): "inputs",
}


def json_path(location: tuple[int | str, ...]) -> str:
    """`$.a.b[2]` of a pydantic location."""
    path = "$"
    last = len(location) - 1
    for position, part in enumerate(location):
        if isinstance(part, int):
            path += f"[{part}]"
        elif part == "[key]" or part.startswith(("function-", "constrained-")):
            continue
        elif part not in _BRANCHES or (position != last and part != "Evaluation"):
            path += f".{part}"
    return path


def rejection_of(error: ValidationError, reason: Reason, under: str = "$") -> RejectionError:
    """What is wrong first in a document or manifest.

    Absent fields, which are all named, and over-long texts have codes of their own; everything
    else is `reason`.
    """
    problems = [
        problem
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
        if not _OTHER_BRANCHES.intersection(problem["loc"])
    ]
    missing = [_path(error, problem, under) for problem in problems if problem["type"] == "missing"]
    if missing:
        names = ", ".join(path[2:] for path in missing[:_MOST_NAMES])
        more = f" and {len(missing) - _MOST_NAMES} more" if len(missing) > _MOST_NAMES else ""
        verb = "is" if len(missing) == 1 else "are"
        return RejectionError(Reason.MISSING_FIELD, f"{names}{more} {verb} missing", missing[0])
    at = _path(error, problems[0], under)
    here = [problem for problem in problems if _path(error, problem, under) == at]
    messages = " or ".join(dict.fromkeys(problem["msg"] for problem in here))
    others = f" (and {len(problems) - len(here)} more)" if len(problems) > len(here) else ""
    is_length = problems[0]["type"] in _LENGTH_TYPES
    return RejectionError(
        Reason.TEXT_TOO_LONG if is_length else reason,
        f"{at[2:] or 'document'}: {messages}{others}",
        at,
    )


def _path(error: ValidationError, problem: ErrorDetails, under: str) -> str:
    location = problem["loc"]
    renamed = _DOCUMENT_FIELDS.get((error.title, str(location[0]))) if location else None
    if renamed is None:
        return under + json_path(location)[1:]
    return f"{under}.{renamed}"
