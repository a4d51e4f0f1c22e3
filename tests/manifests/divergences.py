"""The tables of docs/conformance.md, as the tests read them."""

from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


def table_rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its header; code marks removed."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    section = section.split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def rules() -> set[str]:
    """The numbers of the rules that the document states."""
    section = DOCUMENT.read_text(encoding="utf-8").split("\n## Rules\n", 1)[1].split("\n## ")[0]
    return {line.partition(".")[0] for line in section.splitlines() if line[:1].isdigit()}


@dataclass(frozen=True)
class OddCaseRow:
    """One row of the table of odd cases."""

    case: str
    public_index: str
    ours: str
    objects: str
    reasons: str
    rules: tuple[str, ...]


def odd_case_rows() -> dict[str, OddCaseRow]:
    """The documented divergences of the odd cases, by case."""
    rows = {}
    for case, public_index, ours, objects, reasons, rule in table_rows("Odd cases"):
        name = case.strip("`")
        rows[name] = OddCaseRow(
            name,
            public_index,
            ours,
            "" if objects == "same" else objects,
            "" if reasons == "none" else reasons,
            tuple(rule.split(", ")),
        )
    return rows


@dataclass(frozen=True)
class VectorRow:
    """One row of the table of vectors: what a function gives there and here."""

    function: str
    input: str
    public_index: str
    ours: str
    rule: str


def vector_rows() -> dict[tuple[str, str], VectorRow]:
    """The documented divergences of the vectors, by function and input."""
    rows = [VectorRow(*(cell.strip("`") for cell in row)) for row in table_rows("Vectors")]
    return {(row.function, row.input): row for row in rows}
