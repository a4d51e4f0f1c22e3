"""The rows that normalization writes: one contract per table, without publication columns.

A column that is added later says `Column(name, type, since=2)`; nothing that is here changes.
`assets.tables.contracts` adds the publication columns; the headers of `sql/tables/` say what each
column means. Times are UTC without a zone (DuckDB needs an extension for zones), latencies
integer nanoseconds, digests `sha256:<hex>`.
"""

import pyarrow as pa

from assets.manifests.contract import Column, Contract, columns_of, contracts_of

_TIME = pa.timestamp("us")
_TEXTS = pa.list_(pa.string())

# Where a row came from; on every table.
PROVENANCE = [
    ("dataset", pa.string()),
    ("revision", pa.string()),
    ("path", pa.string()),
    ("line", pa.int32()),
    ("parser_version", pa.string()),
]
_MANIFEST = [("canonical_json", pa.string()), ("metadata_json", pa.string())]


def _table(*columns: tuple[str, pa.DataType] | Column) -> tuple[Column, ...]:
    return columns_of(*columns, *PROVENANCE)


PROJECTS = _table(
    ("project_digest", pa.string()),
    ("slug", pa.string()),
    ("name", pa.string()),
    ("normalized_name", pa.string()),
    ("kind", pa.string()),
    ("canonical_url", pa.string()),
    *_MANIFEST,
)

OPERATIONS = _table(
    ("operation_digest", pa.string()),
    ("slug", pa.string()),
    ("name", pa.string()),
    ("family", pa.string()),
    ("description", pa.string()),
    ("tags", _TEXTS),
    ("aliases", _TEXTS),
    ("input_dtypes", _TEXTS),
    ("output_dtypes", _TEXTS),
    ("constant_axes_json", pa.string()),
    ("variable_axes", _TEXTS),
    ("reference_digest", pa.string()),
    *_MANIFEST,
)

WORKLOADS = _table(
    ("workload_digest", pa.string()),
    ("operation_digest", pa.string()),
    ("definition_name", pa.string()),
    ("external_id", pa.string()),
    ("axes_json", pa.string()),
    ("axes_label", pa.string()),
    ("shape_summary", pa.string()),
    ("dtypes", _TEXTS),
    ("layout_keys", _TEXTS),
    ("input_generators", _TEXTS),
    ("input_fingerprint", pa.string()),
    ("correctness_key", pa.string()),
    ("max_absolute_error", pa.float64()),
    ("max_relative_error", pa.float64()),
    *_MANIFEST,
)

IMPLEMENTATIONS = _table(
    ("implementation_digest", pa.string()),
    ("operation_digest", pa.string()),
    ("project_digest", pa.string()),
    ("project_slug", pa.string()),
    ("slug", pa.string()),
    ("solution_name", pa.string()),
    ("definition_name", pa.string()),
    ("author", pa.string()),
    ("author_directory", pa.string()),
    ("role", pa.string()),
    ("actual_role", pa.string()),
    ("language", pa.string()),
    ("entry_symbol", pa.string()),
    ("target_architectures", _TEXTS),
    ("target_products", _TEXTS),
    ("dependencies", _TEXTS),
    ("destination_passing_style", pa.bool_()),
    ("license_declared", pa.string()),
    ("license_concluded", pa.string()),
    ("deployability_reasons", _TEXTS),
    ("source_available", pa.bool_()),
    ("source_digest", pa.string()),
    ("source_file_name", pa.string()),
    ("source_size_bytes", pa.int64()),
    ("source_revision", pa.string()),
    ("content_digest", pa.string()),
    ("document_digest", pa.string()),
    *_MANIFEST,
)

PROTOCOLS = _table(
    ("protocol_digest", pa.string()),
    ("name", pa.string()),
    ("title", pa.string()),
    ("harness", pa.string()),
    ("timer", pa.string()),
    ("primary_statistic", pa.string()),
    ("family", pa.string()),
    *_MANIFEST,
)

ENVIRONMENTS = _table(
    ("environment_digest", pa.string()),
    ("hardware_vendor", pa.string()),
    ("hardware_product", pa.string()),
    ("hardware_architecture", pa.string()),
    ("gpu_vendor", pa.string()),
    ("gpu_product", pa.string()),
    ("gpu_architecture", pa.string()),
    ("cuda_toolkit", pa.string()),
    ("cuda_major", pa.int32()),
    ("driver", pa.string()),
    ("framework_name", pa.string()),
    ("framework_version", pa.string()),
    ("libraries_json", pa.string()),
    ("summary", pa.string()),
    *_MANIFEST,
)

RUNS = _table(
    ("run_digest", pa.string()),
    ("operation_digest", pa.string()),
    ("workload_digest", pa.string()),
    ("implementation_digest", pa.string()),
    ("protocol_digest", pa.string()),
    ("environment_digest", pa.string()),
    ("comparison_key", pa.string()),
    ("correctness_key", pa.string()),
    ("metric_key", pa.string()),
    ("status", pa.string()),
    ("primary_metric", pa.string()),
    ("primary_statistic", pa.string()),
    ("primary_value", pa.int64()),
    ("primary_unit", pa.string()),
    ("sample_count", pa.int64()),
    ("uncertainty_low_ns", pa.int64()),
    ("uncertainty_high_ns", pa.int64()),
    ("evidence_level", pa.string()),
    ("has_raw_evidence", pa.bool_()),
    ("source_native", pa.bool_()),
    ("source", pa.string()),
    ("external_id", pa.string()),
    ("observed_at", _TIME),
    ("definition_name", pa.string()),
    ("solution_name", pa.string()),
    ("author_directory", pa.string()),
    ("workload_uuid", pa.string()),
    ("input_fingerprint", pa.string()),
    ("reference_digest", pa.string()),
    ("latency_ms", pa.float64()),
    ("reference_latency_ms", pa.float64()),
    ("speedup_factor", pa.float64()),
    ("max_absolute_error", pa.float64()),
    ("max_relative_error", pa.float64()),
    ("correctness_extra_json", pa.string()),
    ("raw_timestamp", pa.string()),
    ("raw_status", pa.string()),
    ("raw_hardware", pa.string()),
    ("log_digest", pa.string()),
    ("log_size_bytes", pa.int64()),
    ("not_measured", pa.bool_()),
    Column("evaluation_extra_json", pa.string(), since=2),
    *_MANIFEST,
)

MEASUREMENTS = _table(
    ("run_digest", pa.string()),
    ("metric", pa.string()),
    ("statistic", pa.string()),
    ("unit", pa.string()),
    ("value", pa.float64()),
    ("sample_count", pa.int64()),
)

ARTIFACTS = _table(
    ("artifact_digest", pa.string()),
    ("kind", pa.string()),
    ("media_type", pa.string()),
    ("size_bytes", pa.int64()),
    ("license", pa.string()),
    ("content", pa.string()),
)

QUARANTINE = _table(
    ("reason", pa.string()),
    ("severity", pa.string()),
    ("kind", pa.string()),
    ("json_path", pa.string()),
    ("message", pa.string()),
    ("excerpt", pa.string()),
    ("file_digest", pa.string()),
    ("inputs_digest", pa.string()),
)

SOURCE_FILES = _table(
    ("kind", pa.string()),
    ("author_directory", pa.string()),
    ("file_digest", pa.string()),
    ("blob_id", pa.string()),
    ("size_bytes", pa.int64()),
    ("documents", pa.int64()),
    ("workload_rows", pa.int64()),
    ("quarantined", pa.int64()),
    ("reasons_json", pa.string()),
    ("references_json", pa.string()),
    ("inputs_digest", pa.string()),
    ("newest_trace_at", _TIME),
)

REVISIONS = _table(
    ("revision_at", _TIME),
    ("revision_at_source", pa.string()),
    ("authors", _TEXTS),
    ("snapshot_id", pa.string()),
    ("location", pa.string()),
    ("url", pa.string()),
    ("files", pa.int64()),
    ("previous_revision", pa.string()),
    ("files_added", pa.int64()),
    ("files_changed", pa.int64()),
    ("files_renamed", pa.int64()),
    ("files_removed", pa.int64()),
)

CONTRACTS: dict[str, Contract] = contracts_of(
    {
        "revisions": REVISIONS,
        "source_files": SOURCE_FILES,
        "projects": PROJECTS,
        "operations": OPERATIONS,
        "workloads": WORKLOADS,
        "implementations": IMPLEMENTATIONS,
        "protocols": PROTOCOLS,
        "environments": ENVIRONMENTS,
        "runs": RUNS,
        "measurements": MEASUREMENTS,
        "artifacts": ARTIFACTS,
        "quarantine": QUARANTINE,
    }
)

SCHEMAS: dict[str, pa.Schema] = {name: contract.schema for name, contract in CONTRACTS.items()}
"""What files of each table have that are written now."""

# The columns that tell a row that is already published from a new one.
KEYS: dict[str, tuple[str, ...]] = {
    "revisions": ("dataset", "revision", "snapshot_id", "parser_version"),
    "source_files": (
        "dataset",
        "revision",
        "path",
        "file_digest",
        "inputs_digest",
        "parser_version",
    ),
    "projects": ("project_digest",),
    "operations": ("operation_digest", "name", "reference_digest"),
    "workloads": ("workload_digest", "definition_name", "external_id", "input_fingerprint"),
    "implementations": ("implementation_digest", "dataset", "path", "document_digest"),
    "protocols": ("protocol_digest",),
    "environments": ("environment_digest",),
    "runs": ("run_digest",),
    "measurements": ("run_digest", "metric", "statistic"),
    "artifacts": ("artifact_digest",),
    "quarantine": (
        "dataset",
        "path",
        "line",
        "reason",
        "json_path",
        "file_digest",
        "inputs_digest",
        "parser_version",
    ),
}
