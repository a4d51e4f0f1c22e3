"""The Dagster code location."""

from collections.abc import Mapping

import dagster as dg

from assets.leaderboards.asset import database_assets
from assets.manifests.asset import manifests
from assets.reruns.asset import controlled_runs, rerun_publication, rerun_requests
from assets.tables.asset import publication
from assets.tables.checks import publication_rules
from assets.traces.asset import trace_files
from pipelines.jobs import controlled_rerun_job, ingest_job
from pipelines.resources import WarehouseResource
from pipelines.settings import Settings


def build_definitions(
    settings: Settings, loggers: Mapping[str, dg.LoggerDefinition] | None = None
) -> dg.Definitions:
    """Everything that a deployment with these settings offers."""
    return dg.Definitions(
        assets=[
            trace_files,
            manifests,
            publication,
            database_assets(),
            rerun_requests,
            controlled_runs,
            rerun_publication,
        ],
        asset_checks=[publication_rules],
        jobs=[ingest_job(settings), controlled_rerun_job()],
        resources={"warehouse": WarehouseResource(root=str(settings.warehouse))},
        loggers=loggers or {},
    )


defs = build_definitions(Settings.from_environment())
