"""The dossier of a run: a row of the view `run_dossiers`, in the order of the public page."""

import json
import math
from collections.abc import Iterator

import duckdb

from assets.answers.lookup import Found, digest_heads, short
from assets.answers.sections import (
    Dossier,
    Row,
    Section,
    add_workload,
    corrections_section,
    data_of,
    provenance_section,
    rows_of,
)
from assets.answers.units import count_text, latency_text, ratio_text
from assets.answers.values import json_value
from assets.manifests.canonical import canonical_number


def run_dossier(connection: duckdb.DuckDBPyConnection, found: Found) -> Dossier:
    """Everything that is known of a run."""
    # The view compares digests, of which every run has another, only inside the run's groups.
    [row] = rows_of(
        connection,
        """
        select * exclude (group_number, condition_number)
        from run_dossiers
        where
            run_digest = $digest
            and comparison_key = $comparison_key
            and group_number = $group_number
            and condition_number = $condition_number
        """,
        {"digest": found.digest, **_groups(connection, found)},
    )
    return dossier_of_row(found, row)


def _groups(connection: duckdb.DuckDBPyConnection, found: Found) -> Row:
    head, _ = digest_heads(found.digest.removeprefix("sha256:"))
    [row] = rows_of(
        connection,
        """
        select
            run_conditions.comparison_key,
            run_conditions.group_number,
            run_conditions.condition_number
        from run_facts
        inner join run_conditions using (condition_number)
        where run_facts.digest_head = $head and run_facts.run_digest = $digest
        """,
        {"head": head, "digest": found.digest},
    )
    return row


def dossier_of_row(found: Found, row: Row) -> Dossier:
    """The same from its row of `run_dossiers`."""
    sections = [
        _identity(row),
        _correctness(row),
        _workload(row),
        _measurements(row),
        _protocol(row),
        _environment(row),
        _artifacts(row),
        _reproductions(row),
        _caveats(row),
        corrections_section(row["corrections"] or []),
        provenance_section(row),
    ]
    return Dossier(
        found, row["title"], list(_headline(row)), sections, data_of(row), row["publication_id"]
    )


def _reproductions(row: Row) -> Section:
    section = Section("Controlled reruns")
    for item in row["reproductions"] or []:
        made = item["run_digest"] == row["run_digest"]
        other = item["reproduces_digest"] if made else item["run_digest"]
        ratio = f", {ratio_text(item['ratio'])} the reported time" if item["ratio"] else ""
        label = "reproduces" if made else "measured again by"
        verdict = f"{item['verdict']}{ratio} ({item['controlled_gpu']})"
        reasons = ", ".join(item["unverified_because"])
        trust = f"not verified: {reasons}" if reasons else "verified"
        section.add(label, f"{short(other)}: {verdict}, {trust}")
    if not row["reproductions"]:
        section.add("none", "not measured again")
    return section


def _headline(row: Row) -> Iterator[str]:
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


def _identity(row: Row) -> Section:
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


def _correctness(row: Row) -> Section:
    section = Section("Correctness")
    section.add("comparator", row["protocol_comparator"])
    section.add("max absolute error", _number(row["max_absolute_error"]))
    section.add("allowed absolute error", _number(row["allowed_absolute_error"]))
    section.add("max relative error", _number(row["max_relative_error"]))
    section.add("allowed relative error", _number(row["allowed_relative_error"]))
    section.add("result", row["status"])
    return section


def _number(value: float | None) -> object:
    """A number as the public page writes it."""
    if value is None or not math.isfinite(value):
        return json_value(value)
    return canonical_number(value)


def _workload(row: Row) -> Section:
    section = Section("Workload")
    add_workload(section, json.loads(row["workload_manifest_json"])["spec"])
    section.add("workload id", row["workload_uuid"])
    section.add("inputs", row["input_fingerprint"])
    return section


def _measurements(row: Row) -> Section:
    section = Section("Measurements")
    for item in row["measurements"] or []:
        value = item["value"]
        text = latency_text(value) if item["unit"] == "ns" else f"{value:g} {item['unit']}"
        samples = item["sample_count"]
        suffix = f" ({count_text(samples, 'sample')})" if samples else ""
        section.add(f"{item['metric']} · {item['statistic']}", text + suffix)
    reference_ms = row["reference_latency_ms"]
    if reference_ms is not None:
        is_timed = reference_ms > 0
        text = latency_text(reference_ms * 1e6) if is_timed else "not timed by the source"
        section.add("reference latency", text)
    for name, value in json.loads(row["evaluation_extra_json"] or "{}").items():
        section.add(
            f"{name}, as the source states it",
            value if isinstance(value, str) else json.dumps(value),
        )
    return section


def _protocol(row: Row) -> Section:
    section = Section("Protocol")
    section.add("harness", row["harness"])
    section.add("timer", row["timer"])
    section.add("primaryStatistic", row["primary_statistic"])
    section.add("correctnessReference", row["correctness_reference"])
    section.add("comparabilityFamily", row["comparability_family"])
    section.add("digest", row["protocol_digest"])
    return section


def _environment(row: Row) -> Section:
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


def _artifacts(row: Row) -> Section:
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
