"""Dossiers: everything that is known of one thing, field by field, as its public page shows it.

A run's dossier is a row of the view `run_dossiers`; those of other kinds are put together here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb

from assets.answers.lookup import Found, Kind, short
from assets.answers.units import count_text, latency_text, ratio_text, time_text
from assets.answers.values import json_value

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
        return {"kind": str(self.found.kind), "digest": self.found.digest, **self.data}


def dossier(connection: duckdb.DuckDBPyConnection, found: Found) -> Dossier:
    """The dossier of one thing."""
    if found.kind is Kind.RUN:
        return _run(connection, found)
    row = _row(connection, f"{found.kind}s", f"{found.kind}_digest", found.digest)
    build = {
        Kind.IMPLEMENTATION: _implementation,
        Kind.WORKLOAD: _workload,
        Kind.OPERATION: _operation,
        Kind.ENVIRONMENT: _environment,
        Kind.PROTOCOL: _protocol,
        Kind.PROJECT: _project,
    }[found.kind]
    return build(connection, found, row)


def citation(connection: duckdb.DuckDBPyConnection, found: Found, at: datetime) -> dict[str, str]:
    """How to cite one thing: what it is, its digest, where it is from, and when it was looked at.

    `text` is the citation in one sentence.
    """
    row = _row(connection, f"{found.kind}s", f"{found.kind}_digest", found.digest)
    pages = connection.execute(
        "select max(url) from revisions where dataset = ? and revision = ?",
        [row["dataset"], row["revision"]],
    ).fetchall()
    accessed = f"{at.astimezone(UTC):%Y-%m-%d}"
    parts = cited(found, row, pages[0][0])
    text = parts.pop("text")
    return {**parts, "accessed": accessed, "text": f"{text} (accessed {accessed})."}


def cited(found: Found, row: Row, dataset_page: str | None) -> dict[str, str]:
    """What a citation says whenever it is read: all but the day, and `text` without a full stop.

    `row` states dataset, revision, path and line; `dataset_page` is where the dataset is shown.
    """
    place = f"{row['dataset']}@{row['revision']}"
    if row["path"]:
        place += f", {row['path']}" + (f" line {row['line']}" if row["line"] else "")
    parts = {
        "what": f"{found.kind} {found.name}".strip(),
        "digest": found.digest,
        "source": place,
    }
    url = _permalink(dataset_page, row)
    if url:
        parts["url"] = url
    parts["text"] = f"KernelIndex {parts['what']}, {found.digest}, from {place}"
    if url:
        parts["text"] += f", {url}"
    return parts


def _permalink(page: str | None, row: Row) -> str | None:
    if not page or not row["path"]:
        return None
    line = f"#L{row['line']}" if row["line"] else ""
    return f"{page}/blob/{row['revision']}/{row['path']}{line}"


def _row(connection: duckdb.DuckDBPyConnection, table: str, key: str, value: str) -> dict[str, Any]:
    result = connection.execute(f"select * from {table} where {key} = ?", [value])
    names = [column[0] for column in result.description or ()]
    return dict(zip(names, result.fetchall()[0], strict=True))


def _rows(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]
) -> list[dict[str, Any]]:
    result = connection.execute(sql, dict(parameters))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _data(row: Row) -> dict[str, object]:
    return {name: json_value(value) for name, value in row.items()}


def _provenance(row: Row) -> Section:
    section = Section("Provenance")
    section.add("dataset", row["dataset"])
    section.add("revision", row["revision"])
    section.add("path", row["path"] and f"{row['path']}" + _line(row))
    section.add("publication", row["publication_id"])
    section.add("published", time_text(row["published_at"]))
    return section


def _line(row: Row) -> str:
    return f":{row['line']}" if row["line"] else ""


def _run(connection: duckdb.DuckDBPyConnection, found: Found) -> Dossier:
    row = _row(connection, "run_dossiers", "run_digest", found.digest)
    return run_dossier(found, row)


def run_dossier(found: Found, row: Row) -> Dossier:
    """The dossier of a run from its row of `run_dossiers`."""
    sections = [
        _run_identity(row),
        _run_correctness(row),
        _run_workload(row),
        _run_measurements(row),
        _run_protocol(row),
        _run_environment(row),
        _run_artifacts(row),
        _caveats(row),
        _corrections(row["corrections"] or []),
        _provenance(row),
    ]
    return Dossier(
        found, row["title"], list(_run_headline(row)), sections, _data(row), row["publication_id"]
    )


def _run_headline(row: Row) -> Iterator[str]:
    if row["primary_value"] is None:
        yield f"not measured: {row['status']}"
    else:
        yield f"{latency_text(row['primary_value'])} {row['primary_statistic']}"
    comparison = "source-native comparison" if row["source_native"] else "controlled comparison"
    observed = f"observed {row['observed_at']:%Y-%m-%d}"
    if row["rank"] is None:
        reasons = ", ".join(row["excluded_because"])
        yield f"Not ranked ({reasons}) · {comparison} · {observed}"
    else:
        yield (
            f"Rank {row['rank']} of {row['group_size']} in its comparison group · {comparison} · "
            f"{observed}"
        )
        if row["is_record"]:
            yield "Holds the record of its comparison group"
        else:
            yield (
                f"{ratio_text(row['slowdown_to_record'])} the record of "
                f"{latency_text(row['record_value'])}; compare with #1: kernelindex compare "
                f"{short(row['run_digest'])} {short(row['record_run_digest'])}"
            )
    if row["reported_speedup"] is not None:
        yield f"{ratio_text(row['reported_speedup'])} reference, as the source reports it"


def _run_identity(row: Row) -> Section:
    section = Section("Identity")
    section.add("run", row["run_digest"])
    section.add("implementation", row["solution"])
    section.add("implementation digest", row["implementation_digest"])
    section.add("project", row["project"])
    section.add("author", f"{row['author']} ({row['role']})" if row["role"] else row["author"])
    section.add("language", row["language"])
    section.add("revision", row["source_revision"])
    section.add("operation", row["operation"])
    section.add("workload", f"{row['workload_label']} · {', '.join(row['workload_dtypes'])}")
    section.add("workload digest", row["workload_digest"])
    section.add("comparison key", row["comparison_key"])
    section.add("source", row["source"])
    section.add("external id", row["external_id"])
    section.add("evidence level", row["evidence_level"])
    section.add("licence", row["license_concluded"] or "none concluded")
    if row["implementation_rank"] is not None:
        section.add(
            "ranking-v2",
            f"rank {row['implementation_rank']} among implementations with these inputs; median "
            f"{latency_text(row['implementation_median_ns'])} of "
            f"{count_text(row['implementation_repeats'], 'repeat')}",
        )
    return section


def _run_correctness(row: Row) -> Section:
    section = Section("Correctness")
    section.add("comparator", row["protocol_comparator"])
    section.add("max absolute error", json_value(row["max_absolute_error"]))
    section.add("allowed absolute error", json_value(row["allowed_absolute_error"]))
    section.add("max relative error", json_value(row["max_relative_error"]))
    section.add("allowed relative error", json_value(row["allowed_relative_error"]))
    section.add("result", row["status"])
    return section


def _run_workload(row: Row) -> Section:
    section = Section("Workload")
    _add_workload(section, json.loads(row["workload_manifest_json"])["spec"])
    section.add("workload id", row["workload_uuid"])
    section.add("inputs", row["input_fingerprint"])
    return section


def _add_workload(section: Section, spec: Row) -> None:
    for name, value in spec["axes"].items():
        section.add(name, value)
    for name, tensor in spec.get("tensors", {}).items():
        shape = ", ".join(map(str, tensor.get("shape", ())))
        section.add(name, f"{tensor['dtype']} [{shape}]")
    for name, value in spec.get("scalars", {}).items():
        section.add(name, json.dumps(value))
    section.add("definition comparator", spec["correctness"].get("comparator"))


def _run_measurements(row: Row) -> Section:
    section = Section("Measurements")
    for item in row["measurements"] or []:
        value = item["value"]
        text = latency_text(value) if item["unit"] == "ns" else f"{value:g} {item['unit']}"
        samples = item["sample_count"]
        suffix = f" ({count_text(samples, 'sample')})" if samples else ""
        section.add(f"{item['metric']} · {item['statistic']}", text + suffix)
    if row["reference_latency_ms"] is not None:
        section.add("reference latency", latency_text(row["reference_latency_ms"] * 1e6))
    return section


def _run_protocol(row: Row) -> Section:
    section = Section("Protocol")
    section.add("harness", row["harness"])
    section.add("timer", row["timer"])
    section.add("primaryStatistic", row["primary_statistic"])
    section.add("correctnessReference", row["correctness_reference"])
    section.add("comparabilityFamily", row["comparability_family"])
    section.add("digest", row["protocol_digest"])
    return section


def _run_environment(row: Row) -> Section:
    section = Section("Environment")
    architecture = row["gpu_architecture"] or "unknown"
    published = row["published_architecture"]
    section.add("gpu", f"{row['gpu_product']} ({architecture})")
    if published != architecture:
        section.add("architecture as published", published)
    section.add("cudaToolkit", row["cuda_toolkit"])
    section.add("driver", row["driver"])
    section.add("framework", row["framework"])
    for name, version in json.loads(row["libraries_json"] or "{}").items():
        section.add(name, version)
    section.add("digest", row["environment_digest"])
    return section


def _run_artifacts(row: Row) -> Section:
    section = Section("Artifacts")
    if row["source_digest"]:
        section.add("source", f"{row['source_file_name']} {row['source_digest']}")
    if row["log_digest"]:
        section.add("log", f"{row['log_digest']} ({row['log_size_bytes']} bytes)")
    if not section.fields:
        section.add("none", "no artifacts published with this run")
    return section


def _caveats(row: Row) -> Section:
    section = Section("Caveats")
    for item in row["caveats"] or []:
        value = "" if item["value"] is None else f" ({item['value']:g})"
        section.add(item["code"], f"{item['explanation']}{value}")
    if not section.fields:
        section.add("none", "no caveat is known")
    return section


def _corrections(items: Sequence[Row]) -> Section:
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


def _implementation(
    connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]
) -> Dossier:
    results = _rows(
        connection,
        """
        select
            environments.gpu_product,
            count(*) as runs,
            count(*) filter (where run_eligibility.eligible) as eligible,
            count(distinct runs.workload_digest) as workloads,
            list(distinct runs.status order by runs.status) as statuses
        from runs
        inner join run_eligibility using (run_digest)
        inner join environments using (environment_digest)
        where runs.implementation_digest = $digest
        group by all
        order by all
        """,
        {"digest": found.digest},
    )
    corrections = _rows(
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
        **_data(row),
        "results": [_data(item) for item in results],
        "corrections": [_data(item) for item in corrections],
    }
    return Dossier(
        found,
        f"{row['solution_name']} · {row['definition_name']}",
        [],
        [identity, source, tried, _corrections(corrections), _provenance(row)],
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
    _add_workload(shape, json.loads(manifest)["spec"])
    shape.add("different inputs", len(row["input_fingerprints"]))
    tried = Section("Results")
    tried.add("runs", runs)
    tried.add("implementations", implementations)
    tried.add("ranking", f"kernelindex top {name} --workload {short(found.digest)}")
    return Dossier(
        found,
        f"{name} · {row['axes_label']}",
        [],
        [identity, shape, tried, _provenance(row)],
        {**_data(row), "operation": name, "runs": runs},
        row["publication_id"],
    )


def _operation(connection: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]) -> Dossier:
    boards = _rows(
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
        [identity, tried, _provenance(row)],
        {**_data(row), "results": [_data(item) for item in boards]},
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
        [hardware, software, tried, _provenance(row)],
        {**_data(row), "runs": runs},
        row["publication_id"],
    )


def _protocol(_: duckdb.DuckDBPyConnection, found: Found, row: dict[str, Any]) -> Dossier:
    section = Section("Protocol")
    for name in ("protocol_digest", "harness", "timer", "primary_statistic", "family"):
        section.add(name.replace("_", " "), row[name])
    return Dossier(
        found, row["title"], [], [section, _provenance(row)], _data(row), row["publication_id"]
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
        [section, _provenance(row)],
        {**_data(row), "implementations": implementations},
        row["publication_id"],
    )
