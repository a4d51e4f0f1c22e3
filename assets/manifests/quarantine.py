"""Why an item was not published: the closed list of reason codes, and what is kept about an item.

The text of each code is what `kernelindex quarantine --explain` prints and what the documentation
lists. Storing quarantined items is the work of `assets.tables`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """`error`: the item is not published. `warning`: it is published, but look at this."""

    ERROR = "error"
    WARNING = "warning"


class Reason(StrEnum):
    """A reason code with one sentence on what it means and what to do."""

    explanation: str

    def __new__(cls, code: str, explanation: str) -> "Reason":
        """Attach the sentence to the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.explanation = explanation
        return member

    # The file or the text
    UNREADABLE_FILE = (
        "UNREADABLE_FILE",
        "The file could not be read or is not what the listing promised; fetch it again.",
    )
    UNPLACED_FILE = (
        "UNPLACED_FILE",
        "The file is none of definition, workload, solution and trace by its path and its fields; "
        "move it to definitions/, workloads/, solutions/ or traces/.",
    )
    BAD_JSON = (
        "BAD_JSON",
        "The text is not JSON; repair the line that is named, the rest of the file was read.",
    )
    NOT_A_DOCUMENT = (
        "NOT_A_DOCUMENT",
        "The JSON value is not an object; a document is an object with named fields.",
    )
    NUL_CHARACTER = (
        "NUL_CHARACTER",
        "A name, version or source holds a NUL character, which no catalog can store; remove it.",
    )
    # Fields
    MISSING_FIELD = (
        "MISSING_FIELD",
        "A field that the document cannot do without is absent; the message names it.",
    )
    BAD_FIELD = (
        "BAD_FIELD",
        "A field has the wrong type or a value that is not allowed; the message names it.",
    )
    BAD_NAME = (
        "BAD_NAME",
        "A name leaves nothing that an identifier can be made of (a-z, 0-9); rename it.",
    )
    TEXT_TOO_LONG = (
        "TEXT_TOO_LONG",
        "A text is longer than a manifest allows; the message gives the field and the limit.",
    )
    NAME_COLLISION = (
        "NAME_COLLISION",
        "Two names of one document become the same identifier once they are lower-cased; "
        "publishing would merge them, so rename one.",
    )
    # Definitions and shapes
    BAD_AXIS = (
        "BAD_AXIS",
        "An axis has a name that is no identifier, a constant without an integer value, or a "
        "derived axis without an expression.",
    )
    BAD_SHAPE = (
        "BAD_SHAPE",
        "A shape entry is neither an integer, nor an axis, nor an expression over constant axes.",
    )
    BAD_DTYPE = (
        "BAD_DTYPE",
        "A dtype cannot be written as an identifier (a-z, then a-z, 0-9, _).",
    )
    DUPLICATE_DEFINITION = (
        "DUPLICATE_DEFINITION",
        "Two files define the same name differently; the first by path is used, remove the other.",
    )
    # Solutions
    DUPLICATE_SOLUTION = (
        "DUPLICATE_SOLUTION",
        "One author has two files with the same solution name, definition and other content; a "
        "trace cannot tell which it measured.",
    )
    # Workloads
    BAD_AXIS_VALUE = (
        "BAD_AXIS_VALUE",
        "A workload binds an axis to something that is no integer, or leaves one unbound.",
    )
    BAD_EXPRESSION = (
        "BAD_EXPRESSION",
        "The expression of a derived axis has no integer value for this workload.",
    )
    BAD_INPUT = (
        "BAD_INPUT",
        "An input descriptor or tolerance of a workload is not usable.",
    )
    # Traces
    UNKNOWN_DEFINITION = (
        "UNKNOWN_DEFINITION",
        "The document names a definition that the dataset does not have.",
    )
    DEFINITION_IN_QUARANTINE = (
        "DEFINITION_IN_QUARANTINE",
        "The definition that the document names is itself in quarantine; repair that first.",
    )
    UNKNOWN_SOLUTION = (
        "UNKNOWN_SOLUTION",
        "The solution file that the trace names is missing, so what was measured is unknown.",
    )
    SOLUTION_IN_QUARANTINE = (
        "SOLUTION_IN_QUARANTINE",
        "The solution that the trace names is itself in quarantine; repair that first.",
    )
    SOLUTION_OF_OTHER_DEFINITION = (
        "SOLUTION_OF_OTHER_DEFINITION",
        "The solution that the trace names implements another definition than the trace measures.",
    )
    AMBIGUOUS_SOLUTION = (
        "AMBIGUOUS_SOLUTION",
        "Several authors have a solution of this name for this definition and the path of the "
        "trace does not say which was measured.",
    )
    NO_SOLUTION = (
        "NO_SOLUTION",
        "The trace has an evaluation but names no solution.",
    )
    NO_EVALUATION = (
        "NO_EVALUATION",
        "The trace names a solution but has no evaluation.",
    )
    UNKNOWN_STATUS = (
        "UNKNOWN_STATUS",
        "The status is none that FlashInfer-Bench or SOL-ExecBench writes.",
    )
    NO_PERFORMANCE = (
        "NO_PERFORMANCE",
        "The trace says PASSED but has no latency.",
    )
    BAD_LATENCY = (
        "BAD_LATENCY",
        "A latency is not a positive, finite number of milliseconds below 2**53 nanoseconds.",
    )
    BAD_MEASURE = (
        "BAD_MEASURE",
        "An error, reference latency or speed-up is not a number that can be kept.",
    )
    BAD_TIMESTAMP = (
        "BAD_TIMESTAMP",
        "The timestamp is not an ISO 8601 time of a day that exists.",
    )
    BAD_ENVIRONMENT = (
        "BAD_ENVIRONMENT",
        "The device name or a library name or version cannot be written into an environment.",
    )
    # Warnings
    UNKNOWN_FIELD = (
        "UNKNOWN_FIELD",
        "A definition or solution has a field that is not read; its content is only in the raw "
        "bytes.",
    )


class RejectionError(Exception):
    """Raised where an item cannot be published; a reader adds file, line and excerpt."""

    def __init__(self, reason: Reason, message: str, json_path: str = "$") -> None:
        super().__init__(message)
        self.reason = reason
        self.json_path = json_path


@dataclass(frozen=True, slots=True)
class QuarantinedItem:
    """One item that needs a person, with where it is and what is wrong."""

    reason: Reason
    severity: Severity
    kind: str
    path: str
    line: int
    json_path: str
    message: str
    excerpt: str
