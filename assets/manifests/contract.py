"""What the columns of a published table are, version by version.

A file says in its Parquet metadata of which version its table is; one that says nothing is of
version 1. A version is never changed once a release has it: what is new is a column with `since`
one above the table's version. Which tables there are is in `records.py` and
`assets.tables.contracts`, where files are compared with their contract.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

RELEASE = "0.1.0"
"""The version of this program, which a file names beside its own."""

TABLE_KEY = b"kernelindex.table"
VERSION_KEY = b"kernelindex.contract"
RELEASE_KEY = b"kernelindex.release"


@dataclass(frozen=True)
class Column:
    """A column of a published table.

    `since` is the first version of the table that has it, `default` what rows of older files have.
    A column that was removed stays listed: `until` is the first version without it, and
    `last_release` the last program that reads files with it.
    """

    name: str
    type: pa.DataType
    since: int = 1
    default: str | int | float | bool | None = None
    until: int | None = None
    last_release: str | None = None

    def is_in(self, version: int) -> bool:
        """Whether a file of this version has it."""
        return self.since <= version and (self.until is None or version < self.until)


@dataclass(frozen=True)
class Contract:
    """A table and all columns that it ever had, in the order in which files have them."""

    table: str
    columns: tuple[Column, ...]

    @cached_property
    def version(self) -> int:
        """The version that is written now."""
        changes = (number for column in self.columns for number in (column.since, column.until))
        return max((number for number in changes if number is not None), default=1)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of files that are written now, with what such a file says of itself."""
        statement = {
            TABLE_KEY: self.table,
            VERSION_KEY: str(self.version),
            RELEASE_KEY: RELEASE,
        }
        return self.schema_of(self.version).with_metadata(statement)

    def schema_of(self, version: int) -> pa.Schema:
        """The columns of files of one version."""
        return pa.schema(
            [(column.name, column.type) for column in self.columns if column.is_in(version)]
        )

    def added_since(self, version: int) -> list[Column]:
        """The columns that files of this version lack."""
        return [
            column
            for column in self.columns
            if column.is_in(self.version) and not column.is_in(version)
        ]

    def removed_since(self, version: int) -> list[Column]:
        """The columns of files of this version that are no longer read."""
        return [
            column
            for column in self.columns
            if column.is_in(version) and not column.is_in(self.version)
        ]


def columns_of(*columns: tuple[str, pa.DataType] | Column) -> tuple[Column, ...]:
    """Columns, those of version 1 as name and type alone."""
    return tuple(column if isinstance(column, Column) else Column(*column) for column in columns)


def contracts_of(tables: Mapping[str, tuple[Column, ...]]) -> dict[str, Contract]:
    """The contracts of tables by name."""
    return {name: Contract(name, columns) for name, columns in tables.items()}
