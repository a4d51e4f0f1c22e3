"""The Dagster code location."""

from collections.abc import Mapping

import dagster as dg

from assets.leaderboards.asset import PUBLICATION, database_assets
from assets.leaderboards.site.asset import site
from assets.manifests.asset import manifests
from assets.reruns.asset import (
    SAMPLE_RERUNS,
    controlled_runs,
    rerun_publication,
    rerun_requests,
    sample_reruns,
)
from assets.tables.asset import publication
from assets.tables.checks import publication_rules
from assets.traces.asset import trace_files
from pipelines.executor import one_process
from pipelines.jobs import STALE_AFTER, build_site_job, controlled_rerun_job, ingest_job
from pipelines.resources import WarehouseResource
from pipelines.schedules import daily_ingest
from pipelines.sensors import new_revision
from pipelines.settings import Settings


def build_definitions(
    settings: Settings, loggers: Mapping[str, dg.LoggerDefinition] | None = None
) -> dg.Definitions:
    """Everything that a deployment with these settings offers.

    Schedule, sensor and freshness exist only where a remote dataset is configured.
    """
    ingest = ingest_job(settings)
    assets: list[dg.AssetsDefinition] = [
        trace_files,
        manifests,
        publication,
        sample_reruns,
        database_assets(published_by=(PUBLICATION, SAMPLE_RERUNS)),
        rerun_requests,
        controlled_runs,
        rerun_publication,
    ]
    if settings.is_remote:
        assets = list(dg.map_asset_specs(_with_freshness, assets))
    return dg.Definitions(
        # The site is built when somebody asks for it, so it is never stale.
        assets=[*assets, site],
        asset_checks=[publication_rules],
        jobs=[ingest, controlled_rerun_job(), build_site_job()],
        schedules=[daily_ingest(ingest, settings)] if settings.is_remote else [],
        sensors=[new_revision(ingest, settings)] if settings.is_remote else [],
        resources={"warehouse": WarehouseResource(root=str(settings.warehouse))},
        executor=one_process,
        loggers=loggers or {},
    )


def _with_freshness(spec: dg.AssetSpec) -> dg.AssetSpec:
    if spec.group_name != "leaderboards":
        return spec
    policy = dg.FreshnessPolicy.time_window(fail_window=STALE_AFTER)
    return spec.replace_attributes(freshness_policy=policy)


defs = build_definitions(Settings.from_environment())
