"""Why a rerun is refused: one code per cause, each with the sentence that tells what to do."""

from collections.abc import Sequence
from enum import StrEnum


class Refusal(StrEnum):
    """Causes for which nothing is launched."""

    UNKNOWN_RUN = "unknown_run"
    AMBIGUOUS_RUN = "ambiguous_run"
    IS_A_RERUN = "is_a_rerun"
    UNKNOWN_GROUP = "unknown_group"
    UNKNOWN_OPERATION = "unknown_operation"
    UNKNOWN_WORKLOAD = "unknown_workload"
    UNKNOWN_SOLUTION = "unknown_solution"
    NOTHING_SELECTED = "nothing_selected"
    NO_SOURCE = "no_source"
    MISSING_TENSORS = "missing_tensors"
    UNSUPPORTED_LANGUAGE = "unsupported_language"
    UNSUPPORTED_WORKLOAD = "unsupported_workload"
    TOO_MANY_ITEMS = "too_many_items"
    LAUNCHER_NOT_CONFIGURED = "launcher_not_configured"


class RerunRefusedError(Exception):
    """A request that is refused before anything is launched; the message says what to do.

    `candidates` are what was meant perhaps; as text both stand in one line.
    """

    def __init__(self, refusal: Refusal, message: str, candidates: Sequence[str] = ()) -> None:
        listed = f" (perhaps: {'; '.join(candidates)})" if candidates else ""
        super().__init__(message + listed)
        self.refusal = refusal
        self.message = message
        self.candidates = tuple(candidates)


class ResultRefusedError(Exception):
    """A result bundle that cannot be published; nothing of it was."""
