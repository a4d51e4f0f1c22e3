"""Why an item was not published: the closed list of reason codes, and what is kept about an item.

The text of each code is what `kernelindex quarantine --explain` prints and what
docs/quarantine.md, which `reasons_page` renders, lists. Storing quarantined items is the work of
`assets.tables`.
"""

from dataclasses import dataclass
from enum import StrEnum

MOST_FAULTS_A_FILE = 50_000
"""So many documents of a file are kept in quarantine, and then it is read no further."""
MOST_MESSAGE_CHARACTERS = 2_000
"""Names that a message repeats may be as long as a document."""


class Severity(StrEnum):
    """`error`: the item is not published. `warning`: it is published, but look at this."""

    ERROR = "error"
    WARNING = "warning"


_FILES = "Files and texts"
_FIELDS = "Fields"
_DEFINITIONS = "Definitions and shapes"
_SOLUTIONS = "Solutions"
_WORKLOADS = "Workloads"
_TRACES = "Traces"
_WARNINGS = "Warnings"


class Reason(StrEnum):
    """A reason code with the part of a dataset it is about and one sentence.

    The sentence says what the code means and what to do.
    """

    area: str
    explanation: str

    def __new__(cls, code: str, area: str, explanation: str) -> "Reason":
        """Attach area and sentence to the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.area = area
        member.explanation = explanation
        return member

    @property
    def severity(self) -> Severity:
        """Whether an item of this reason is published."""
        return Severity.WARNING if self.area == _WARNINGS else Severity.ERROR

    UNREADABLE_FILE = (
        "UNREADABLE_FILE",
        _FILES,
        "The file could not be read or is not what the listing promised; fetch it again.",
    )
    UNPLACED_FILE = (
        "UNPLACED_FILE",
        _FILES,
        "The file is none of definition, workload, solution and trace by its path and its fields; "
        "move it to definitions/, workloads/, solutions/ or traces/.",
    )
    BAD_JSON = (
        "BAD_JSON",
        _FILES,
        "The text is not JSON; repair the line that is named, the rest of the file was read.",
    )
    DOCUMENT_TOO_LARGE = (
        "DOCUMENT_TOO_LARGE",
        _FILES,
        "One document, a line of a JSON Lines file for instance, has more than 3 MiB; shorten its "
        "log, the rest of the file was read.",
    )
    TOO_MANY_FAULTS = (
        "TOO_MANY_FAULTS",
        _FILES,
        "50,000 documents of the file are in quarantine already, and the rest of it was not read; "
        "repair those first.",
    )
    NOT_A_DOCUMENT = (
        "NOT_A_DOCUMENT",
        _FILES,
        "The JSON value is not an object; a document is an object with named fields.",
    )
    NUL_CHARACTER = (
        "NUL_CHARACTER",
        _FILES,
        "A text that is kept (name, version, source, log) holds a NUL character, which no catalog "
        "can store; remove it.",
    )
    MISSING_FIELD = (
        "MISSING_FIELD",
        _FIELDS,
        "A field that the document cannot do without is absent; the message names it.",
    )
    BAD_FIELD = (
        "BAD_FIELD",
        _FIELDS,
        "A field has the wrong type or a value that is not allowed; the message names it.",
    )
    BAD_NAME = (
        "BAD_NAME",
        _FIELDS,
        "A name leaves nothing that an identifier can be made of (a-z, 0-9); rename it.",
    )
    TEXT_TOO_LONG = (
        "TEXT_TOO_LONG",
        _FIELDS,
        "A text is longer than a manifest allows; the message gives the field and the limit.",
    )
    NAME_COLLISION = (
        "NAME_COLLISION",
        _FIELDS,
        "Two names of one document become the same identifier once they are lower-cased; "
        "publishing would merge them, so rename one.",
    )
    BAD_AXIS = (
        "BAD_AXIS",
        _DEFINITIONS,
        "An axis has a name that is no identifier, a constant without an integer value, or a "
        "derived axis without an expression.",
    )
    BAD_SHAPE = (
        "BAD_SHAPE",
        _DEFINITIONS,
        "A shape entry is neither an integer, nor an axis, nor an expression over constant axes.",
    )
    BAD_DTYPE = (
        "BAD_DTYPE",
        _DEFINITIONS,
        "A dtype cannot be written as an identifier (a-z, then a-z, 0-9, _).",
    )
    DUPLICATE_DEFINITION = (
        "DUPLICATE_DEFINITION",
        _DEFINITIONS,
        "Two files define the same name differently; the first by path is used, remove the other.",
    )
    DUPLICATE_SOLUTION = (
        "DUPLICATE_SOLUTION",
        _SOLUTIONS,
        "One author has two files with the same solution name, definition and other content; a "
        "trace cannot tell which it measured.",
    )
    BAD_AXIS_VALUE = (
        "BAD_AXIS_VALUE",
        _WORKLOADS,
        "A workload binds an axis to something that is no integer, or leaves one unbound.",
    )
    BAD_EXPRESSION = (
        "BAD_EXPRESSION",
        _WORKLOADS,
        "The expression of a derived axis has no integer value for this workload.",
    )
    BAD_INPUT = (
        "BAD_INPUT",
        _WORKLOADS,
        "An input descriptor or tolerance of a workload is not usable.",
    )
    UNKNOWN_DEFINITION = (
        "UNKNOWN_DEFINITION",
        _TRACES,
        "The document names a definition that the dataset does not have.",
    )
    DEFINITION_IN_QUARANTINE = (
        "DEFINITION_IN_QUARANTINE",
        _TRACES,
        "The definition that the document names is itself in quarantine; repair that first.",
    )
    UNKNOWN_SOLUTION = (
        "UNKNOWN_SOLUTION",
        _TRACES,
        "The solution file that the trace names is missing, so what was measured is unknown.",
    )
    SOLUTION_IN_QUARANTINE = (
        "SOLUTION_IN_QUARANTINE",
        _TRACES,
        "The solution that the trace names is itself in quarantine; repair that first.",
    )
    SOLUTION_OF_OTHER_DEFINITION = (
        "SOLUTION_OF_OTHER_DEFINITION",
        _TRACES,
        "The solution that the trace names implements another definition than the trace measures.",
    )
    AMBIGUOUS_SOLUTION = (
        "AMBIGUOUS_SOLUTION",
        _TRACES,
        "Several authors have a solution of this name for this definition and the path of the "
        "trace does not say which was measured.",
    )
    NO_SOLUTION = (
        "NO_SOLUTION",
        _TRACES,
        "The trace has an evaluation but names no solution.",
    )
    NO_EVALUATION = (
        "NO_EVALUATION",
        _TRACES,
        "The trace names a solution but has no evaluation.",
    )
    UNKNOWN_STATUS = (
        "UNKNOWN_STATUS",
        _TRACES,
        "The status is none that FlashInfer-Bench or SOL-ExecBench writes.",
    )
    NO_PERFORMANCE = (
        "NO_PERFORMANCE",
        _TRACES,
        "The trace says PASSED but has no latency.",
    )
    BAD_LATENCY = (
        "BAD_LATENCY",
        _TRACES,
        "A latency is not a positive, finite number of milliseconds below 2**53 nanoseconds, or "
        "rounds to 0 nanoseconds.",
    )
    BAD_MEASURE = (
        "BAD_MEASURE",
        _TRACES,
        "An error, reference latency or speed-up is not a number that can be kept.",
    )
    BAD_TIMESTAMP = (
        "BAD_TIMESTAMP",
        _TRACES,
        "The timestamp is not an ISO 8601 time of a day that exists.",
    )
    BAD_ENVIRONMENT = (
        "BAD_ENVIRONMENT",
        _TRACES,
        "The device name or a library name or version cannot be written into an environment.",
    )
    UNKNOWN_FIELD = (
        "UNKNOWN_FIELD",
        _WARNINGS,
        "A definition, solution or trace has a field that is not read; of an evaluation its "
        "content is in runs.evaluation_extra_json, otherwise only in the raw bytes.",
    )


class RejectionError(Exception):
    """Raised where an item cannot be published; a reader adds file, line and excerpt.

    The message names the field that `json_path` points to.
    """

    def __init__(self, reason: Reason, message: str, json_path: str = "$") -> None:
        field = json_path[2:]
        super().__init__(message if field in message else f"{field}: {message}")
        self.reason = reason
        self.json_path = json_path


@dataclass(frozen=True, slots=True)
class QuarantinedItem:
    """One item that needs a person, with where it is and what is wrong."""

    reason: Reason
    kind: str
    path: str
    line: int
    json_path: str
    message: str
    excerpt: str

    @property
    def severity(self) -> Severity:
        """Whether the item is published all the same."""
        return self.reason.severity


_PAGE_HEAD = """# Quarantine

What is not published is kept with a reason: which file and line, which field, the beginning of
the text, and one of the codes below. `kernelindex quarantine` counts them, `kernelindex quarantine
--explain CODE` prints what stands here. An item leaves the quarantine when its input is repaired
and ingested again, or when what it needs (a definition, a solution) appears.

Items of severity `error` are not published; everything else of their file is. Items of severity
`warning` are published.

This page is made from `assets/manifests/quarantine.py`; a test compares the two.
"""


def reasons_page() -> str:
    """docs/quarantine.md: every reason code by area."""
    page = _PAGE_HEAD
    for area in dict.fromkeys(reason.area for reason in Reason):
        page += f"\n## {area}\n\n| code | severity | meaning |\n| --- | --- | --- |\n"
        page += "".join(
            f"| `{reason}` | {reason.severity} | {reason.explanation} |\n"
            for reason in Reason
            if reason.area == area
        )
    return page
