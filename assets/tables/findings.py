"""What a check of the warehouse found: one finding per thing that is not as it should be."""

from dataclasses import dataclass, field
from enum import StrEnum


class Level(StrEnum):
    """`error`: answers may be wrong or missing. `warning`: nothing is wrong yet."""

    ERROR = "error"
    WARNING = "warning"


class Fault(StrEnum):
    """A kind of finding, with one sentence on what it means."""

    explanation: str

    def __new__(cls, code: str, explanation: str) -> "Fault":
        """Attach the sentence to the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.explanation = explanation
        return member

    # The folder
    LOW_DISK = ("LOW_DISK", "The disk has too little space left for the next build.")
    WRITER_ACTIVE = ("WRITER_ACTIVE", "Another process is writing; what it builds is not checked.")
    LEFTOVER = ("LEFTOVER", "Something half-built was left by a process that died.")
    # Publications
    DAMAGED_CHAIN = ("DAMAGED_CHAIN", "The record of what was published is damaged or gone.")
    NO_RECORD = ("NO_RECORD", "A publication or generation has no readable record.")
    MISSING_PUBLICATION = ("MISSING_PUBLICATION", "Something that was published here is gone.")
    MISSING_GENERATION = ("MISSING_GENERATION", "The directory of the newest generation is gone.")
    MISSING_FILE = ("MISSING_FILE", "A Parquet file that the record lists is gone.")
    DAMAGED_FILE = ("DAMAGED_FILE", "A Parquet file is not the one that was published.")
    OTHER_SCHEMA = ("OTHER_SCHEMA", "A Parquet file has other columns than its table.")
    OTHER_VERSION = ("OTHER_VERSION", "Only another version of this program can read a file.")
    ROW_COUNT = ("ROW_COUNT", "A table has other rows than its publications' records say.")
    UNLISTED_FILE = ("UNLISTED_FILE", "A publication has a file that its record does not list.")
    # Rows
    WRONG_DIGEST = ("WRONG_DIGEST", "A digest is not that of the content it names.")
    WRONG_COLUMN = ("WRONG_COLUMN", "A typed column says something else than the manifest.")
    BROKEN_REFERENCE = ("BROKEN_REFERENCE", "A row names another that is not published.")
    MIXED_GROUP = ("MIXED_GROUP", "A comparison group has several operations or workloads.")
    UNCONCLUDED_LICENSE = (
        "UNCONCLUDED_LICENSE",
        "A licence is claimed that no manifest concluded.",
    )
    # Raw bytes
    MISSING_RAW = ("MISSING_RAW", "The raw bytes of a published source file are gone.")
    DAMAGED_RAW = ("DAMAGED_RAW", "The raw bytes of a source file are not those of its digest.")
    MISSING_SNAPSHOT = ("MISSING_SNAPSHOT", "The list of files of an ingestion is gone.")
    SET_ASIDE = ("SET_ASIDE", "A statement breaks on a publication, so the index lacks it.")
    # The database
    NO_DATABASE = ("NO_DATABASE", "There is no database file, or it cannot be opened.")
    OLD_DATABASE = ("OLD_DATABASE", "The database was built before the newest publication.")
    VANISHED = ("VANISHED", "A published digest is neither shown nor stood for by another one.")
    WRONG_TABLE = ("WRONG_TABLE", "A table of the database is not what the files give.")


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be; `examples` are up to three of `count`."""

    fault: Fault
    level: Level
    where: str
    message: str
    count: int = 1
    examples: tuple[str, ...] = ()
    publication_id: str | None = None
    generation: int | None = None

    def as_json(self) -> dict[str, object]:
        """The finding as a JSON object."""
        return {
            "fault": str(self.fault),
            "level": str(self.level),
            "where": self.where,
            "message": self.message,
            "count": self.count,
            "examples": list(self.examples),
        }


@dataclass
class Examination:
    """All findings, and what was looked at (counts by what)."""

    findings: list[Finding] = field(default_factory=list)
    looked_at: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> list[Finding]:
        """The findings that make answers wrong or missing."""
        return [finding for finding in self.findings if finding.level is Level.ERROR]

    def count(self, what: str, number: int = 1) -> None:
        """Note that something was looked at."""
        self.looked_at[what] = self.looked_at.get(what, 0) + number
