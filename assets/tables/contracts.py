"""Which Parquet tables there are, and what columns each file of them must have.

The columns of the files come from `assets.manifests.records`. The name of a publication's
directory adds `publication_id` to them, and that gives `published_at`. Files of earlier versions
of a table are read with what they lack (`database.py`); a file with other columns or types than
its version has is refused by name instead of being widened silently.
"""

import stat
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from assets.manifests import records
from assets.manifests.contract import (
    RELEASE,
    RELEASE_KEY,
    TABLE_KEY,
    VERSION_KEY,
    Contract,
    columns_of,
    contracts_of,
)
from assets.tables.errors import OtherVersionError, WarehouseError

PUBLICATION_COLUMNS = [
    ("publication_id", pa.string()),
    ("published_at", pa.timestamp("us")),
]

CORRECTIONS = columns_of(
    ("correction_id", pa.string()),
    ("action", pa.string()),
    ("target_kind", pa.string()),
    ("target_digest", pa.string()),
    ("replacement_digest", pa.string()),
    ("author", pa.string()),
    ("reason", pa.string()),
    ("evidence_url", pa.string()),
    ("effective_at", pa.timestamp("us")),
    *records.PROVENANCE,
)

RERUN_SAMPLES = columns_of(
    ("run_digest", pa.string()),
    ("series", pa.string()),
    ("call", pa.int32()),
    ("round", pa.int32()),
    ("seed", pa.int64()),
    ("device_ns", pa.int64()),
    ("wall_ns", pa.int64()),
    *records.PROVENANCE,
)

REPRODUCTIONS = columns_of(
    ("run_digest", pa.string()),
    ("reproduces_digest", pa.string()),
    ("verdict", pa.string()),
    ("ratio", pa.float64()),
    ("ratio_low", pa.float64()),
    ("ratio_high", pa.float64()),
    ("reported_ns", pa.int64()),
    ("controlled_ns", pa.int64()),
    ("reported_status", pa.string()),
    ("controlled_status", pa.string()),
    ("reported_gpu", pa.string()),
    ("controlled_gpu", pa.string()),
    ("session_id", pa.string()),
    ("runner", pa.string()),
    ("reason_codes", pa.list_(pa.string())),
    ("note_codes", pa.list_(pa.string())),
    ("unverified_because", pa.list_(pa.string())),
    ("call_convention", pa.string()),
    ("reference_ns", pa.int64()),
    ("roofline_floor_ns", pa.int64()),
    ("calibration_json", pa.string()),
    ("bundle_id", pa.string()),
    ("request_reason", pa.string()),
    *records.PROVENANCE,
)

CONTRACTS: dict[str, Contract] = {
    **records.CONTRACTS,
    **contracts_of(
        {
            "corrections": CORRECTIONS,
            "rerun_samples": RERUN_SAMPLES,
            "reproductions": REPRODUCTIONS,
        }
    ),
}
"""Every table, with all columns that it ever had."""


def _placed(schema: pa.Schema) -> pa.Schema:
    """The columns of files that say themselves which publication brought each row."""
    fields = [*schema, *(pa.field(*column) for column in PUBLICATION_COLUMNS)]
    return pa.schema(fields, metadata=schema.metadata)


STAGED: dict[str, pa.Schema] = {name: contract.schema for name, contract in CONTRACTS.items()}
"""Every table, with the columns of its files as they are written now."""

PUBLISHED: dict[str, pa.Schema] = {name: _placed(schema) for name, schema in STAGED.items()}
"""Every table, with the columns of the view that the database is made from."""

PUBLICATIONS = pa.schema(
    [
        ("publication_id", pa.string()),
        ("published_at", pa.timestamp("us")),
        ("kind", pa.string()),
        ("dataset", pa.string()),
        ("revision", pa.string()),
        ("new_runs", pa.int64()),
        ("new_rows", pa.int64()),
    ]
)
"""The publication records as rows; made when a database is built, no Parquet table."""

LEFT_OUT = pa.schema(
    [
        ("publication_id", pa.string()),
        ("published_at", pa.timestamp("us")),
        ("kind", pa.string()),
        ("dataset", pa.string()),
        ("revision", pa.string()),
        ("set_aside_at", pa.timestamp("us")),
        ("statement", pa.string()),
        ("error", pa.string()),
        ("left_out_runs", pa.int64()),
        ("left_out_rows", pa.int64()),
    ]
)
"""What a build leaves out as rows; made when a database is built, no Parquet table."""


def check_file(table: str, path: Path, *, placed: bool = False) -> int:
    """Compare a published file with the contract of its table; return the version that it is of.

    `placed` is for files of a generation, which have the publication's columns too.

    Raises:
        OtherVersionError: a file that another version of this program can read.
        WarehouseError: an unreadable file, or one with other columns or types.
    """
    return check_schema(table, path, file_schema(path), placed=placed)


def file_schema(path: Path) -> pa.Schema:
    """The columns of a Parquet file, and what it says of itself.

    Raises:
        WarehouseError: an unreadable file.
    """
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise WarehouseError(f"{path}: is no plain file; run `kernelindex doctor`")
        return _read_schema(path, state.st_ino, state.st_size, state.st_mtime_ns)
    except (OSError, pa.ArrowException) as error:
        first_line = str(error).splitlines()[0]
        raise WarehouseError(
            f"{path}: not a readable Parquet file ({first_line}); run `kernelindex doctor`"
        ) from error


# Published files never change, and one command looks at the same ones several times.
@lru_cache(maxsize=20_000)
def _read_schema(path: Path, inode: int, size_bytes: int, changed_ns: int) -> pa.Schema:
    return pq.read_schema(path)


def check_schema(table: str, path: Path, found: pa.Schema, *, placed: bool = False) -> int:
    """Compare the columns of a file with the contract of its table; return its version.

    Raises:
        OtherVersionError: a file that another version of this program can read.
        WarehouseError: other columns or types than the version has that the file says it is of.
    """
    said = found.metadata or {}
    contract = CONTRACTS.get(table)
    if contract is None:
        raise OtherVersionError(f"{path}: {_is_newer(f'table {table}', said)}")
    if said.get(TABLE_KEY, table.encode()) != table.encode():
        raise WarehouseError(f"{path}: says that it is of another table than {table}")
    version = _version(said)
    if version > contract.version:
        what = f"version {version} of table {table}"
        raise OtherVersionError(f"{path}: {_is_newer(what, said)}")
    expected = contract.schema_of(version)
    if differing := _differing(_placed(expected) if placed else expected, found):
        raise WarehouseError(
            f"{path}: the columns {', '.join(differing)} are not those of version {version} of "
            f"table {table}"
        )
    for column in contract.removed_since(version):
        raise OtherVersionError(
            f"{path}: has the column {column.name}, which table {table} has no more since version "
            f"{column.until}; kernelindex {column.last_release} is the last that reads it"
        )
    return version


def unknown_to_this(what: str, folder: Path) -> OtherVersionError:
    """The error for something in a folder that only a newer program knows, named by its files."""
    for path in sorted(folder.glob("*.parquet")):
        try:
            said = file_schema(path).metadata or {}
        except WarehouseError:
            continue  # another file says it too
        if said.get(RELEASE_KEY, RELEASE.encode()) != RELEASE.encode():
            return OtherVersionError(f"{folder}: {_is_newer(what, said)}")
    return OtherVersionError(f"{folder}: {_is_newer(what, {})}")


def _version(said: dict[bytes, bytes]) -> int:
    """The version that a file says it is of: 1 where it says nothing, 0 where it says no number."""
    text = said.get(VERSION_KEY, b"1")
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _is_newer(what: str, said: dict[bytes, bytes]) -> str:
    release = said.get(RELEASE_KEY, b"").decode("ascii", "replace")
    named = release.isprintable() and release not in ("", RELEASE)
    wanted = f"kernelindex {release} or newer" if named else "a newer one"
    return f"has {what}, which kernelindex {RELEASE} does not know; use {wanted}"


def _differing(expected: pa.Schema, found: pa.Schema) -> list[str]:
    types = {field.name: field.type for field in expected}
    actual = {field.name: field.type for field in found}
    # A name that is there twice has no type of its own.
    repeated = {name for name in found.names if found.names.count(name) > 1}
    return sorted(
        repeated
        | {name for name in types.keys() | actual.keys() if types.get(name) != actual.get(name)}
    )
