"""The Dagster code location."""

from collections.abc import Mapping

import dagster as dg

from assets.leaderboards.asset import database_assets
from assets.leaderboards.site.asset import site
from assets.manifests.asset import manifests
from assets.tables.asset import publication
from assets.tables.checks import publication_rules
from assets.traces.asset import trace_files
from pipelines.jobs import build_site_job, ingest_job
from pipelines.resources import WarehouseResource
from pipelines.settings import Settings


def build_definitions(
    settings: Settings, loggers: Mapping[str, dg.LoggerDefinition] | None = None
) -> dg.Definitions:
    """Everything that a deployment with these settings offers."""
    return dg.Definitions(
        assets=[trace_files, manifests, publication, database_assets(), site],
        asset_checks=[publication_rules],
        jobs=[ingest_job(settings), build_site_job()],
        resources={"warehouse": WarehouseResource(root=str(settings.warehouse))},
        loggers=loggers or {},
    )


defs = build_definitions(Settings.from_environment())
