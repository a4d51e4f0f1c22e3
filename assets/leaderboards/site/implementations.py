"""The pages of implementations: what each is, how it did everywhere, and its source."""

from assets.answers.lookup import short
from assets.answers.units import latency_text
from assets.answers.values import json_value
from assets.leaderboards.site import addresses
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader, Row, grouped
from assets.leaderboards.site.rendering import Renderer, data_json

_IMPLEMENTATIONS = """
    select
        implementations.*,
        operations.name as operation,
        counted.runs,
        counted.runs_passed,
        counted.gpus,
        coalesce(boards.wins, 0) as wins,
        coalesce(boards.groups_passed, 0) as groups_passed
    from implementations
    left join operations using (operation_digest)
    left join (
        select
            runs.implementation_digest,
            count(*) as runs,
            count(*) filter (where runs.status = 'passed') as runs_passed,
            list(distinct environments.gpu_product order by environments.gpu_product) as gpus
        from runs
        inner join environments using (environment_digest)
        group by runs.implementation_digest
    ) as counted using (implementation_digest)
    left join (
        select
            implementation_digest,
            sum(wins)::bigint as wins,
            sum(groups_passed)::bigint as groups_passed
        from leaderboard_solutions
        group by implementation_digest
    ) as boards using (implementation_digest)
    order by operations.name, implementations.solution_name, implementations.implementation_digest
"""

_RESULTS = """
    select
        runs.implementation_digest,
        runs.strict_group,
        runs.operation_digest,
        any_value(runs.definition_name) as operation,
        any_value(workloads.axes_label) as workload,
        any_value(environments.gpu_product) as gpu_product,
        any_value(ranked.rank) as rank,
        any_value(ranked.group_size) as group_size,
        any_value(ranked.median_ns) as median_ns,
        count(*) as runs,
        count(*) filter (where runs.status = 'passed') as runs_passed,
        list(distinct runs.status order by runs.status) as statuses,
        arg_min(runs.run_digest, (runs.primary_value is null, runs.primary_value, runs.run_digest))
            as run_digest
    from runs
    inner join workloads using (workload_digest)
    inner join environments using (environment_digest)
    left join ranked_implementations as ranked
        on
            ranked.strict_group = runs.strict_group
            and ranked.implementation_digest = runs.implementation_digest
    group by runs.implementation_digest, runs.strict_group, runs.operation_digest
    order by gpu_product, operation, workload, runs.strict_group
"""

_CORRECTIONS = "from corrections order by effective_at, correction_id"


def write_implementation_pages(
    reader: IndexReader, renderer: Renderer, folder: SiteFolder, shown_artifacts: frozenset[str]
) -> int:
    """Write the list of implementations and the page of each, also of one that was never run."""
    implementations = reader.rows(_IMPLEMENTATIONS)
    results = grouped(reader.rows(_RESULTS), "implementation_digest")
    corrections = grouped(reader.rows(_CORRECTIONS), "target_digest")
    for row in implementations:
        digest = row["implementation_digest"]
        address = addresses.implementation(digest)
        found = results.get(digest, [])
        folder.write(
            addresses.beside(address, ".json"),
            data_json(
                {
                    **{name: json_value(value) for name, value in row.items()},
                    "results": json_value(found),
                    "manifest": reader.manifest(digest),
                }
            ),
        )
        folder.write(
            address,
            renderer.page(
                address,
                "implementation.html",
                implementation=row,
                results=found,
                best=_best(found),
                corrections=corrections.get(digest, []),
                shown_artifacts=shown_artifacts,
                manifest=reader.manifest_text(digest),
            ),
        )
    folder.write(
        addresses.IMPLEMENTATIONS,
        renderer.page(
            addresses.IMPLEMENTATIONS, "implementations.html", implementations=implementations
        ),
    )
    for row in reader.rows("from identity_aliases order by all"):
        _write_alias(renderer, folder, row)
    return len(implementations)


def _write_alias(renderer: Renderer, folder: SiteFolder, alias: Row) -> None:
    """An implementation that is shown under another digest: its old address leads there."""
    address = addresses.implementation(alias["implementation_digest"])
    folder.write(
        address,
        renderer.page(
            address,
            "moved.html",
            what="Implementation",
            old=short(alias["implementation_digest"]),
            target=addresses.implementation(alias["kept_digest"]),
        ),
    )


def _best(results: list[Row]) -> str | None:
    """The best place, in words."""
    ranked = [row for row in results if row["rank"] is not None]
    if not ranked:
        return None
    firsts = sum(row["rank"] == 1 for row in ranked)
    if firsts:
        return f"first in {firsts} of {len(ranked)} groups that it passed in"
    best = min(ranked, key=lambda row: (row["rank"], row["median_ns"]))
    return (
        f"best place: {best['rank']} of {best['group_size']} with "
        f"{latency_text(best['median_ns'])} at {best['workload']} on {best['gpu_product']}"
    )
