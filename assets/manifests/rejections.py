"""Turn a pydantic error into one rejection that names the field and what is wrong with it."""

from pydantic import ValidationError

from assets.manifests.quarantine import Reason, RejectionError

# Names of union branches that pydantic puts into a location; they are not part of the document.
_BRANCHES = frozenset({"Evaluation", "NotEvaluated"})
_LENGTH_TYPES = frozenset({"string_too_long", "too_long"})


def json_path(location: tuple[int | str, ...]) -> str:
    """`$.a.b[2]` of a pydantic location."""
    path = "$"
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in _BRANCHES and not part.startswith(("function-", "constrained-")):
            path += f".{part}"
    return path


def rejection_of(error: ValidationError, reason: Reason, under: str = "$") -> RejectionError:
    """The first problem of a validation error.

    Absent fields and over-long texts have codes of their own; everything else is `reason`.
    """
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    problem = min(problems, key=lambda item: item["type"] == "extra_forbidden")
    at = under + json_path(problem["loc"])[1:]
    others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if problem["type"] == "missing":
        return RejectionError(Reason.MISSING_FIELD, f"{at[2:]} is missing{others}", at)
    if problem["type"] in _LENGTH_TYPES:
        return RejectionError(Reason.TEXT_TOO_LONG, f"{at[2:]}: {problem['msg']}{others}", at)
    return RejectionError(reason, f"{at[2:] or 'document'}: {problem['msg']}{others}", at)
