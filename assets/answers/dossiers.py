"""Dossiers: everything that is known of one thing, field by field, as its public page shows it."""

import json
from typing import Any

import duckdb

from assets.answers.lookup import Found, Kind, short
from assets.answers.run_dossier import run_dossier
from assets.answers.sections import (
    Dossier,
    Section,
    add_workload,
    corrections_section,
    data_of,
    provenance_section,
    row_of,
    rows_of,
)
from assets.answers.units import count_text


def dossier(connection: duckdb.DuckDBPyConnection, found: Found) -> Dossier:
    """The dossier of one thing."""
    if found.kind is Kind.RUN:
        return run_dossier(connection, found)
    row = row_of(connection, f"{found.kind}s", f"{found.kind}_digest", found.digest)
    build = {
        Kind.IMPLEMENTATION: _implementation,
        Kind.WORKLOAD: _workload,
        Kind.OPERATION: _operation,
        Kind.ENVIRONMENT: _environment,
        Kind.PROTOCOL: _protocol,
        Kind.PROJECT: _project,
    }[found.kind]
    return build(connection, found, row)


def _implementation(
    connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]
) -> Dossier:
    results = rows_of(
        connection,
        """
        select
            environments.gpu_product,
            count(*) as runs,
            count(*) filter (where runs.eligible) as eligible,
            count(distinct runs.workload_digest) as workloads,
            list(distinct runs.status order by runs.status) as statuses
        from runs
        inner join environments using (environment_digest)
        where runs.implementation_digest = $digest
        group by all
        order by all
        """,
        {"digest": found.digest},
    )
    corrections = rows_of(
        connection,
        "select * from corrections where target_digest = $digest "
        "order by effective_at, correction_id",
        {"digest": found.digest},
    )
    identity = Section("Identity")
    identity.add("implementation", row["implementation_digest"])
    identity.add("names", ", ".join(row["solution_names"]))
    identity.add("operation", row["definition_name"])
    identity.add("operation digest", row["operation_digest"])
    identity.add("project", row["project_slug"])
    identity.add("author", f"{row['author_directory']} ({row['actual_role']})")
    identity.add("language", row["language"])
    identity.add("entry", row["entry_symbol"])
    identity.add("dependencies", ", ".join(row["dependencies"] or []))
    identity.add("devices", ", ".join(row["target_products"] or []))
    identity.add("revision", row["source_revision"])
    source = Section("Source")
    source.add("licence", row["license_concluded"] or "none concluded")
    source.add("kept", row["source_digest"] and f"kernelindex source {short(found.digest)}")
    source.add("file", row["source_file_name"])
    source.add("size", row["source_size_bytes"] and f"{row['source_size_bytes']} bytes")
    source.add("digest", row["source_digest"])
    tried = Section("Results")
    for item in results:
        tried.add(
            item["gpu_product"],
            f"{count_text(item['runs'], 'run')} of {count_text(item['workloads'], 'workload')}, "
            f"{item['eligible']} ranked ({', '.join(item['statuses'])})",
        )
    if not results:
        tried.add("none", "never measured")
    data = {
        **data_of(row),
        "results": [data_of(item) for item in results],
        "corrections": [data_of(item) for item in corrections],
    }
    return Dossier(
        found,
        f"{row['solution_name']} · {row['definition_name']}",
        [],
        [identity, source, tried, corrections_section(corrections), provenance_section(row)],
        data,
        row["publication_id"],
    )


def _workload(connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]) -> Dossier:
    [(name, manifest)] = connection.execute(
        "select operations.name, manifests.canonical_json from manifests, operations "
        "where manifests.digest = ? and operations.operation_digest = ?",
        [found.digest, row["operation_digest"]],
    ).fetchall()
    [(runs, implementations)] = connection.execute(
        "select count(*), count(distinct implementation_digest) from runs "
        "where workload_digest = ?",
        [found.digest],
    ).fetchall()
    identity = Section("Identity")
    identity.add("workload", found.digest)
    identity.add("operation", name)
    identity.add("operation digest", row["operation_digest"])
    identity.add("external ids", ", ".join(row["external_ids"]))
    shape = Section("Workload")
    add_workload(shape, json.loads(manifest)["spec"])
    shape.add("different inputs", len(row["input_fingerprints"]))
    tried = Section("Results")
    tried.add("runs", runs)
    tried.add("implementations", implementations)
    tried.add("ranking", f"kernelindex top {name} --workload {short(found.digest)}")
    return Dossier(
        found,
        f"{name} · {row['axes_label']}",
        [],
        [identity, shape, tried, provenance_section(row)],
        {**data_of(row), "operation": name, "runs": runs},
        row["publication_id"],
    )


def _operation(connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]) -> Dossier:
    boards = rows_of(
        connection,
        "select * exclude (operation_digest, operation, family) from leaderboard_operations "
        "where operation_digest = $digest order by gpu_product",
        {"digest": found.digest},
    )
    identity = Section("Identity")
    identity.add("operation", found.digest)
    identity.add("names", ", ".join(row["definition_names"]))
    identity.add("family", row["family"])
    identity.add("description", row["description"])
    identity.add("tags", ", ".join(row["tags"] or []))
    identity.add("input dtypes", ", ".join(row["input_dtypes"]))
    identity.add("output dtypes", ", ".join(row["output_dtypes"]))
    for name, value in json.loads(row["constant_axes_json"] or "{}").items():
        identity.add(f"axis {name}", value)
    identity.add("variable axes", ", ".join(row["variable_axes"]))
    identity.add("references", ", ".join(map(short, row["reference_digests"] or [])))
    tried = Section("Results")
    for item in boards:
        tried.add(
            item["gpu_product"],
            f"{count_text(item['runs'], 'run')}, {item['runs_eligible']} ranked in "
            f"{count_text(item['comparison_groups'], 'group')}; "
            f"{item['implementations_passed']} of {item['implementations_tried']} "
            f"implementations passed",
        )
    if not boards:
        tried.add("none", "never measured")
    tried.add("ranking", f"kernelindex top {row['name']}")
    return Dossier(
        found,
        row["name"],
        [],
        [identity, tried, provenance_section(row)],
        {**data_of(row), "results": [data_of(item) for item in boards]},
        row["publication_id"],
    )


def _environment(
    connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]
) -> Dossier:
    [(runs,)] = connection.execute(
        "select count(*) from runs where environment_digest = ?", [found.digest]
    ).fetchall()
    hardware = Section("Hardware")
    hardware.add("environment", found.digest)
    hardware.add("gpu", f"{row['gpu_product']} ({row['gpu_architecture']})")
    hardware.add("vendor", row["gpu_vendor"])
    if row["hardware_architecture"] != row["gpu_architecture"]:
        hardware.add("architecture as published", row["hardware_architecture"])
    software = Section("Software")
    software.add("cudaToolkit", row["cuda_toolkit"])
    software.add("driver", row["driver"])
    software.add("framework", f"{row['framework_name']} {row['framework_version']}")
    for name, version in json.loads(row["libraries_json"] or "{}").items():
        software.add(name, version)
    tried = Section("Results")
    tried.add("runs", runs)
    return Dossier(
        found,
        f"{row['gpu_product']} · {row['summary']}",
        [],
        [hardware, software, tried, provenance_section(row)],
        {**data_of(row), "runs": runs},
        row["publication_id"],
    )


def _protocol(_: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]) -> Dossier:
    section = Section("Protocol")
    for name in ("protocol_digest", "harness", "timer", "primary_statistic", "family"):
        section.add(name.replace("_", " "), row[name])
    return Dossier(
        found,
        row["title"],
        [],
        [section, provenance_section(row)],
        data_of(row),
        row["publication_id"],
    )


def _project(connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]) -> Dossier:
    [(implementations,)] = connection.execute(
        "select count(*) from implementations where project_digest = ?", [found.digest]
    ).fetchall()
    section = Section("Project")
    section.add("project", found.digest)
    section.add("name", row["name"])
    section.add("kind", row["kind"])
    section.add("url", row["canonical_url"])
    section.add("implementations", implementations)
    return Dossier(
        found,
        row["name"],
        [],
        [section, provenance_section(row)],
        {**data_of(row), "project_kind": row["kind"], "implementations": implementations},
        row["publication_id"],
    )
