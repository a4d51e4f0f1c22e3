"""What a dossier is made of: sections of labelled values, and rows as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from assets.answers.lookup import Found, short
from assets.answers.units import time_text
from assets.answers.values import json_value
from assets.manifests.canonical import canonical_number

Row = Mapping[str, Any]


@dataclass
class Section:
    """A part of a dossier: labels with values, in the order of the page."""

    title: str
    fields: list[tuple[str, str]] = field(default_factory=list)

    def add(self, label: str, value: object) -> None:
        """A field; one without a value is left out."""
        if value not in (None, "", []):
            self.fields.append((label, str(value)))


@dataclass
class Dossier:
    """What is known of one thing: to read, and as data."""

    found: Found
    title: str
    headline: list[str]
    sections: list[Section]
    data: dict[str, object]
    publication_id: str | None

    def as_json(self) -> dict[str, object]:
        """As one JSON object."""
        return {**self.data, "kind": str(self.found.kind), "digest": self.found.digest}


def row_of(
    connection: duckdb.DuckDBPyConnection, table: str, key: str, value: str
) -> dict[str, Any]:
    """The one row of a table with this key."""
    result = connection.execute(f"select * from {table} where {key} = ?", [value])
    names = [column[0] for column in result.description or ()]
    return dict(zip(names, result.fetchall()[0], strict=True))


def rows_of(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]
) -> list[dict[str, Any]]:
    """Rows of a query by column name."""
    result = connection.execute(sql, dict(parameters))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def data_of(row: Row) -> dict[str, object]:
    """A row as JSON values."""
    return {name: json_value(value) for name, value in row.items()}


def provenance_section(row: Row) -> Section:
    """Where a row came from."""
    section = Section("Provenance")
    section.add("dataset", row["dataset"])
    section.add("revision", row["revision"])
    section.add("path", row["path"] and f"{row['path']}" + _line(row))
    section.add("publication", row["publication_id"])
    section.add("published", time_text(row["published_at"]))
    return section


def _line(row: Row) -> str:
    return f":{row['line']}" if row["line"] else ""


def add_workload(section: Section, spec: Row) -> None:
    """Axes, tensors and scalars of a workload's spec."""
    for name, value in spec["axes"].items():
        section.add(name, value)
    for name, tensor in spec.get("tensors", {}).items():
        shape = ", ".join(map(str, tensor.get("shape", ())))
        section.add(name, f"{tensor['dtype']} [{shape}]")
    for name, value in spec.get("scalars", {}).items():
        section.add(name, f"{value['dtype']} {canonical_number(value['value'])}")
    section.add("definition comparator", spec["correctness"].get("comparator"))


def corrections_section(items: Sequence[Row]) -> Section:
    """Retractions, supersessions and attestations."""
    section = Section("Replications and notes")
    for item in items:
        replaced = item.get("replacement_digest")
        by = f" by {short(replaced)}" if replaced else ""
        section.add(
            f"{item['action']}{by}",
            f"{item['author']}, {item['effective_at']:%Y-%m-%d}: {item['reason']} "
            f"({item['evidence_url']})",
        )
    if not section.fields:
        section.add("none", "no attestations yet; they never change the evidence level")
    return section
