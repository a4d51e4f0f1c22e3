"""The pages about the index as a whole: home, GPUs, quarantine, methodology."""

from collections import Counter
from importlib import resources

from assets.answers.values import json_value
from assets.leaderboards.catalog import read_files
from assets.leaderboards.site import addresses
from assets.leaderboards.site.figures import csv_text
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader, grouped
from assets.leaderboards.site.rendering import Renderer
from assets.manifests.quarantine import Reason

_SHOWN_QUARANTINE = 2_000
_SHOWN_RECORDS = 10
_SHOWN_VERIFIED = 10

_COUNTS = """
    select
        (select count(*) from runs) as runs,
        (select count(*) from runs where eligible) as runs_ranked,
        (select count(*) from operations) as operations,
        (select count(*) from workloads) as workloads,
        (select count(*) from implementations) as implementations,
        (select count(distinct author_directory) from implementations) as authors,
        (select count(distinct strict_group) from runs) as comparison_groups,
        (select count(distinct gpu_product) from environments) as gpus,
        (select count(*) from quarantine) as quarantined
"""

_FRESHNESS = """
    select
        dataset,
        any_value(newest_revision) as newest_revision,
        any_value(revision_at) as revision_at,
        any_value(read_at) as read_at,
        sum(runs)::bigint as runs,
        count(*) as authors,
        min(first_run_at) as first_run_at,
        max(newest_run_at) as newest_run_at
    from freshness
    group by dataset
    order by dataset
"""

_COVERAGE = """
    select
        coverage.gpu_product,
        count(*) as operations,
        count(*) filter (where workloads_tried > 0) as operations_tried,
        count(*) filter (where workloads_passed > 0) as operations_passed,
        sum(workloads)::bigint as workloads,
        sum(workloads_tried)::bigint as workloads_tried,
        sum(workloads_passed)::bigint as workloads_passed,
        count(*) filter (where has_baseline) as operations_with_baseline,
        any_value(counted.runs) as runs,
        any_value(counted.implementations) as implementations
    from coverage
    left join (
        select
            environments.gpu_product,
            count(*) as runs,
            count(distinct runs.implementation_digest) as implementations
        from runs
        inner join environments using (environment_digest)
        group by environments.gpu_product
    ) as counted using (gpu_product)
    group by coverage.gpu_product
    order by runs desc, coverage.gpu_product
"""

_RECORDS = """
    select
        record_events.*,
        runs.definition_name as operation,
        runs.operation_digest,
        runs.strict_group,
        runs.solution_name as solution,
        runs.author_directory as author,
        workloads.axes_label as workload,
        environments.gpu_product
    from record_events
    inner join runs using (run_digest)
    inner join workloads using (workload_digest)
    inner join environments using (environment_digest)
    order by record_events.at desc, record_events.run_digest
    limit $limit
"""

_VERIFIED = """
    select
        runs.run_digest,
        runs.solution_name as solution,
        runs.author_directory as author,
        runs.definition_name as operation,
        runs.operation_digest,
        runs.strict_group,
        runs.primary_value,
        runs.evidence_level,
        runs.observed_at,
        environments.gpu_product
    from runs
    inner join environments using (environment_digest)
    where runs.eligible and runs.evidence_level in ('verified', 'replicated')
    order by runs.observed_at desc, runs.run_digest
    limit $limit
"""

_BUSIEST = """
    from leaderboard_operations
    order by runs_eligible desc, operation, gpu_product
    limit 8
"""

_ENVIRONMENTS = """
    select environments.*, count(runs.run_digest) as runs
    from environments
    left join runs using (environment_digest)
    group by all
    order by environments.gpu_product, runs desc, environments.environment_digest
"""

_QUARANTINE = """
    select reason, severity, kind, dataset, revision, path, line, json_path, message, excerpt,
        first_seen, last_seen
    from quarantine
    order by severity, reason, dataset, path, line, json_path
"""

EVIDENCE_LEVELS = {
    "reported": "The source states it; neither a log nor the source of the kernel is kept.",
    "reproducible": "Source, raw evidence and a complete identity are kept, so that anyone can "
    "measure it again. Nobody has to have done so.",
    "verified": "A controlled rerun under our own protocol confirmed it.",
    "replicated": "At least two independent parties confirmed it.",
}
"""What each level means, lowest first; derived by rule, never typed by anybody."""


def write_home(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> None:
    """Write the first page."""
    [counts] = reader.rows(_COUNTS)
    folder.write(
        addresses.HOME,
        renderer.page(
            addresses.HOME,
            "home.html",
            counts=counts,
            freshness=reader.rows(_FRESHNESS),
            coverage=reader.rows(_COVERAGE),
            records=reader.rows(_RECORDS, {"limit": _SHOWN_RECORDS}),
            verified=reader.rows(_VERIFIED, {"limit": _SHOWN_VERIFIED}),
            busiest=reader.rows(_BUSIEST),
            statuses=reader.rows(
                "select status, count(*) as runs from runs group by all order by runs desc, status"
            ),
            evidence=reader.rows(
                "select evidence_level, count(*) as runs from runs group by all order by all"
            ),
        ),
    )


def write_gpus(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> None:
    """Write the page of devices."""
    by_product = {row["gpu_product"]: row for row in reader.rows("from gpu_limits")}
    operations = grouped(
        reader.rows("from leaderboard_operations order by gpu_product, operation"), "gpu_product"
    )
    folder.write(
        addresses.GPUS,
        renderer.page(
            addresses.GPUS,
            "gpus.html",
            coverage=reader.rows(_COVERAGE),
            environments=grouped(reader.rows(_ENVIRONMENTS), "gpu_product"),
            limits=by_product,
            operations=operations,
        ),
    )


def write_quarantine(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> None:
    """Write the page of what was not published, and why."""
    items = reader.rows(_QUARANTINE)
    columns = list(items[0]) if items else ["reason"]
    folder.write(
        addresses.beside(addresses.QUARANTINE, ".csv"),
        csv_text(columns, (list(item.values()) for item in items)),
    )
    counts = Counter(item["reason"] for item in items)
    explained = {str(reason): reason.explanation for reason in Reason}
    folder.write(
        addresses.QUARANTINE,
        renderer.page(
            addresses.QUARANTINE,
            "quarantine.html",
            items=items[:_SHOWN_QUARANTINE],
            total=len(items),
            reasons=[
                (reason, number, explained.get(reason, ""))
                for reason, number in counts.most_common()
            ],
        ),
    )


def write_methodology(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> None:
    """Write how everything on this site is worked out: formulas, codes and levels."""
    formulas = [
        {
            "table": file.name,
            "version": file.formula,
            "documentation": file.documentation,
            "sql": file.text,
        }
        for file in read_files(resources.files("sql")).values()
        if file.formula
    ]
    folder.write(
        addresses.METHODOLOGY,
        renderer.page(
            addresses.METHODOLOGY,
            "methodology.html",
            formulas=formulas,
            caveats=reader.rows(
                """
                select caveat_codes.*, count(caveats.run_digest) as runs
                from caveat_codes
                left join caveats using (code)
                group by all
                order by code
                """
            ),
            levels=EVIDENCE_LEVELS,
            exclusions=reader.rows(
                """
                select reason, any_value(explanation) as explanation, count(*) as runs
                from excluded_runs
                group by reason
                order by runs desc, reason
                """
            ),
            reasons=[
                {"code": str(reason), "severity": str(reason.severity), "text": reason.explanation}
                for reason in Reason
            ],
            gpu_limits=json_value(reader.rows("from gpu_limits order by gpu_product")),
        ),
    )
