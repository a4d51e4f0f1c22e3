"""Which Parquet tables there are, and what columns each file of them must have.

The columns of the files come from `assets.manifests.records`. The name of a publication's
directory adds `publication_id` to them, and that gives `published_at`. A file with other columns
or types is refused by name instead of being widened silently.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from assets.manifests import records
from assets.tables.errors import WarehouseError

PUBLICATION_COLUMNS = [
    ("publication_id", pa.string()),
    ("published_at", pa.timestamp("us")),
]

CORRECTIONS = pa.schema(
    [
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
    ]
)

RERUN_SAMPLES = pa.schema(
    [
        ("run_digest", pa.string()),
        ("series", pa.string()),
        ("call", pa.int32()),
        ("round", pa.int32()),
        ("seed", pa.int64()),
        ("device_ns", pa.int64()),
        ("wall_ns", pa.int64()),
        *records.PROVENANCE,
    ]
)

REPRODUCTIONS = pa.schema(
    [
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
    ]
)

STAGED: dict[str, pa.Schema] = {
    **records.SCHEMAS,
    "corrections": CORRECTIONS,
    "rerun_samples": RERUN_SAMPLES,
    "reproductions": REPRODUCTIONS,
}
"""Every table, with the columns of its files."""

PUBLISHED: dict[str, pa.Schema] = {
    name: pa.schema([*schema, *(pa.field(*column) for column in PUBLICATION_COLUMNS)])
    for name, schema in STAGED.items()
}
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


def check_file(table: str, path: Path) -> None:
    """Compare a published file with the contract of its table.

    Raises:
        WarehouseError: an unreadable file, or one with other columns or types.
    """
    try:
        found = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise WarehouseError(f"{path}: not a readable Parquet file ({error})") from error
    expected = {field.name: field.type for field in STAGED[table]}
    actual = {field.name: field.type for field in found}
    if actual != expected:
        differing = sorted(
            name
            for name in expected.keys() | actual.keys()
            if expected.get(name) != actual.get(name)
        )
        raise WarehouseError(
            f"{path}: columns {', '.join(differing)} are not those of table {table}; "
            "the file is of another version, run `kernelindex doctor`"
        )
