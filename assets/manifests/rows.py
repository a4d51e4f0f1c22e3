"""Manifests as rows of `records.SCHEMAS`, and the batch that gathers them for a Parquet part."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assets.manifests import records
from assets.manifests.canonical import canonical_json, utf8
from assets.manifests.catalog import Located
from assets.manifests.environments import Environment
from assets.manifests.implementations import Implementation, Project, SourceFile
from assets.manifests.kinds import Manifest
from assets.manifests.operations import Operation
from assets.manifests.quarantine import QuarantinedItem
from assets.manifests.workloads import Case

PARSER_VERSION = "2"

Row = dict[str, Any]
Columns = Mapping[str, "list[Any] | pa.Array | str | bool"]
"""Values by column: one for each row, or one for all of them."""

# Hardly any two are the same: Parquet would try to make a dictionary of them in vain.
_DISTINCT_TEXTS = frozenset({"canonical_json", "content"})


class RowBatch:
    """Rows of several tables, written as one Parquet file per table."""

    def __init__(self, dataset: str, revision: str) -> None:
        self._constant = {
            "dataset": dataset,
            "revision": revision,
            "parser_version": PARSER_VERSION,
        }
        self.rows: dict[str, list[Row]] = {name: [] for name in records.SCHEMAS}

    def clear(self) -> None:
        """Forget rows that were written."""
        for rows in self.rows.values():
            rows.clear()

    def add(self, table: str, path: str, line: int | None, **values: object) -> None:
        """One row with its provenance."""
        values["path"] = path
        values["line"] = line
        self.rows[table].append(values)

    def tables(self) -> Iterator[tuple[str, str, pa.Table]]:
        """Name, ending of the part's name, and rows of every table that has some."""
        for name, rows in self.rows.items():
            if rows:
                columns = {
                    column: [row.get(column) for row in rows]
                    for column in records.SCHEMAS[name].names
                }
                yield name, "", self.arrow_table(name, len(rows), columns)

    def arrow_table(self, name: str, size: int, columns: Columns) -> pa.Table:
        """Columns with their provenance; a column that is absent is null in all `size` rows."""
        schema, columns = records.SCHEMAS[name], {**columns, **self._constant}
        return pa.table(
            [_column(columns.get(field.name), field.type, size) for field in schema], schema=schema
        )

    def write(self, directory: Path, part: str) -> None:
        """Write every table that has rows to `<directory>/<table>/<part>.parquet`."""
        for name, ending, table in self.tables():
            folder = directory / name
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(
                table,
                folder / f"{part}{ending}.parquet",
                compression="zstd",
                use_dictionary=[n for n in table.column_names if n not in _DISTINCT_TEXTS],
            )


def _column(
    values: list[Any] | pa.Array | str | bool | None, kind: pa.DataType, size: int
) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if not isinstance(values, list):
        return pa.repeat(pa.scalar(values, kind), size)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_storable(value) for value in values], kind)


def _storable(value: str | list[str] | None) -> str | list[str] | None:
    # A lone surrogate has no UTF-8; it is stored as U+FFFD, which is also what its digest is of.
    if isinstance(value, list):
        return [utf8(text).decode() for text in value]
    return value if value is None else utf8(value).decode()


def manifest_columns(manifest: Manifest) -> Row:
    """Identity body and editorial part of a manifest."""
    return {"canonical_json": manifest.identity_json, "metadata_json": manifest.metadata_json}


def add_operation(batch: RowBatch, operation: Operation, at: Located) -> None:
    """A definition."""
    spec = operation.manifest.spec
    batch.add(
        "operations",
        at.path,
        at.line,
        operation_digest=operation.digest,
        slug=operation.slug,
        name=operation.name,
        family=operation.family,
        description=operation.manifest.metadata.get("description"),
        tags=list(operation.tags),
        aliases=list(operation.aliases),
        input_dtypes=sorted({argument.dtype for argument in operation.inputs}),
        output_dtypes=sorted({argument.dtype for argument in operation.outputs}),
        constant_axes_json=canonical_json(dict(operation.constants)),
        variable_axes=sorted(
            name for name, axis in spec["axes"].items() if axis["role"] == "variable"
        ),
        reference_digest=operation.reference_digest,
        **manifest_columns(operation.manifest),
    )
    if operation.reference is not None:
        _add_artifact(
            batch, at, operation.reference_digest, "reference", "text/x-python", operation.reference
        )


def _add_artifact(
    batch: RowBatch,
    at: Located,
    digest: str,
    kind: str,
    media_type: str,
    content: str,
    license_expression: str | None = None,
) -> None:
    batch.add(
        "artifacts",
        at.path,
        at.line,
        artifact_digest=digest,
        kind=kind,
        media_type=media_type,
        size_bytes=len(utf8(content)),
        license=license_expression,
        content=content,
    )


def add_project(batch: RowBatch, project: Project, at: Located) -> None:
    """An author."""
    spec = project.manifest.spec
    batch.add(
        "projects",
        at.path,
        at.line,
        project_digest=project.manifest.digest,
        slug=project.slug,
        name=spec["name"],
        normalized_name=spec["name"].lower(),
        kind=spec["kind"],
        canonical_url=spec.get("repository"),
        **manifest_columns(project.manifest),
    )


def add_implementation(batch: RowBatch, implementation: Implementation, at: Located) -> None:
    """A solution with its main source."""
    spec = implementation.manifest.spec
    source = implementation.source
    licensing = spec["licensing"]
    batch.add(
        "implementations",
        at.path,
        at.line,
        implementation_digest=implementation.digest,
        operation_digest=spec["operation"]["specDigest"],
        project_digest=implementation.project.manifest.digest,
        project_slug=implementation.project.slug,
        slug=implementation.slug,
        solution_name=implementation.name,
        definition_name=implementation.definition,
        author=implementation.author,
        author_directory=implementation.author_directory,
        role=implementation.role,
        actual_role=implementation.actual_role,
        language=implementation.language,
        entry_symbol=spec["callable"].get("symbol"),
        target_architectures=spec["support"]["hardwareArchitectures"],
        target_products=spec["support"]["productsTested"],
        dependencies=list(implementation.dependencies),
        destination_passing_style=implementation.destination_passing_style,
        license_declared=licensing.get("declared"),
        license_concluded=licensing.get("concluded"),
        deployability_reasons=list(implementation.deployability.reasons),
        source_available=implementation.source_available,
        source_digest=source.digest if source else None,
        source_file_name=source.name if source else None,
        source_size_bytes=source.size_bytes if source else None,
        source_revision=implementation.source_revision,
        content_digest=implementation.content.digest,
        document_digest=at.document_digest,
        **manifest_columns(implementation.manifest),
    )
    if source is not None:
        add_source(batch, source, at, licensing.get("concluded"))


def add_source(
    batch: RowBatch, source: SourceFile, at: Located, license_expression: str | None
) -> None:
    """The kept source of an implementation."""
    _add_artifact(
        batch,
        at,
        source.digest,
        "source",
        source.media_type,
        source.content,
        license_expression,
    )


def add_case(batch: RowBatch, case: Case, path: str, line: int) -> None:
    """A workload."""
    spec = case.manifest.spec
    batch.add(
        "workloads",
        path,
        line,
        workload_digest=case.digest,
        operation_digest=spec["operationSpecDigest"],
        definition_name=case.definition,
        external_id=case.external_id,
        axes_json=case.axes_json,
        axes_label=case.axes_label,
        shape_summary=case.shape_summary,
        dtypes=case.dtypes,
        layout_keys=case.layout_keys,
        input_generators=case.generators,
        input_fingerprint=case.input_fingerprint,
        correctness_key=case.correctness_key,
        max_absolute_error=spec["correctness"].get("maxAbsoluteError"),
        max_relative_error=spec["correctness"].get("maxRelativeError"),
        **manifest_columns(case.manifest),
    )


def add_protocol(batch: RowBatch, protocol: Manifest) -> None:
    """A protocol; it comes from no document."""
    spec = protocol.spec
    batch.add(
        "protocols",
        "",
        None,
        protocol_digest=protocol.digest,
        name=protocol.metadata["name"],
        title=protocol.metadata.get("title"),
        harness=spec["harness"]["name"],
        timer=spec["measurement"]["timer"],
        primary_statistic=spec["measurement"]["primaryStatistic"],
        family=spec.get("comparability", {}).get("family"),
        **manifest_columns(protocol),
    )


def add_environment(batch: RowBatch, environment: Environment, path: str, line: int) -> None:
    """An environment as published, with the corrected device columns beside."""
    hardware, software = (environment.manifest.spec[part] for part in ("hardware", "software"))
    framework = software.get("framework", {})
    batch.add(
        "environments",
        path,
        line,
        environment_digest=environment.digest,
        hardware_vendor=hardware["vendor"],
        hardware_product=hardware["product"],
        hardware_architecture=hardware["architecture"],
        gpu_vendor=environment.actual.vendor,
        gpu_product=environment.actual.product,
        gpu_architecture=environment.actual.architecture,
        cuda_toolkit=software.get("cudaToolkit"),
        cuda_major=environment.cuda_major,
        driver=software.get("driver"),
        framework_name=framework.get("name"),
        framework_version=framework.get("version"),
        libraries_json=canonical_json(software.get("libraries", {})),
        summary=environment.summary,
        **manifest_columns(environment.manifest),
    )


def add_quarantined(
    batch: RowBatch,
    items: Iterable[QuarantinedItem],
    file_digests: Mapping[str, str],
    inputs_digests: Mapping[str, str],
) -> None:
    """Items that need a person, with the state of the file that they were found in."""
    for item in items:
        batch.add(
            "quarantine",
            item.path,
            item.line,
            reason=str(item.reason),
            severity=str(item.severity),
            kind=item.kind,
            json_path=item.json_path,
            message=item.message,
            excerpt=item.excerpt,
            file_digest=file_digests.get(item.path),
            inputs_digest=inputs_digests.get(item.path, ""),
        )
