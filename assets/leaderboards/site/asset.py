"""The Dagster asset of the static site; `build.py` does the work."""

from typing import Protocol

import dagster as dg

from assets.answers.units import size_text
from assets.leaderboards.site.build import SiteOutcome, build_site
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Warehouse

SITE = "site"

# The tables that pages are made from; the view run_dossiers stands for those it reads.
TABLES = (
    "artifacts",
    "caveat_codes",
    "caveats",
    "corrections",
    "coverage",
    "environments",
    "excluded_runs",
    "fast_p_curves",
    "freshness",
    "gpu_limits",
    "identity_aliases",
    "implementations",
    "leaderboard_authors",
    "leaderboard_authors_upstream",
    "leaderboard_operations",
    "leaderboard_solutions",
    "manifests",
    "operations",
    "protocols",
    "quarantine",
    "ranked_implementations",
    "ranked_runs",
    "record_events",
    "revisions",
    "run_aliases",
    "run_dossiers",
    "run_eligibility",
    "runs",
    "workloads",
)


class WarehouseSource(Protocol):
    """The resource that opens the warehouse."""

    def open(self) -> Warehouse:
        """The warehouse, ready for use."""


@dg.asset(
    name=SITE,
    group_name="leaderboards",
    kinds={"html"},
    owners=["team:index"],
    deps=list(TABLES),
    pool="warehouse",
)
def site(warehouse: dg.ResourceParam[WarehouseSource]) -> dg.MaterializeResult[None]:
    """The static site: a page for each operation, comparison group, run, implementation, author."""
    try:
        outcome = build_site(warehouse.open())
    except WarehouseError as error:
        raise dg.Failure(error.message, allow_retries=False) from error
    return dg.MaterializeResult(metadata=_metadata(outcome))


def _metadata(outcome: SiteOutcome) -> dict[str, dg.MetadataValue]:
    pages = "\n".join(f"| {kind} | {number:,} |" for kind, number in outcome.pages.items())
    files = outcome.files
    return {
        "home": dg.MetadataValue.path(outcome.home),
        "pages": dg.MetadataValue.md(f"| kind | pages |\n|---|---:|\n{pages}"),
        "written": dg.MetadataValue.int(files.written),
        "unchanged": dg.MetadataValue.int(files.unchanged),
        "gone": dg.MetadataValue.int(files.removed),
        "size": dg.MetadataValue.text(size_text(files.size_bytes)),
        "seconds": dg.MetadataValue.float(round(outcome.seconds, 2)),
    }
