"""Jobs: which assets run together, and with which settings by default."""

from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

import dagster as dg

from assets.leaderboards.site.asset import SITE
from assets.reruns.asset import RERUN_GROUP
from assets.traces.asset import DatasetConfig
from pipelines.settings import Settings

if TYPE_CHECKING:
    # Dagster does not export the type that `define_asset_job` returns.
    from dagster._core.definitions.unresolved_asset_job_definition import (
        UnresolvedAssetJobDefinition,
    )

    AssetJob: TypeAlias = UnresolvedAssetJobDefinition
else:
    AssetJob: TypeAlias = object

INGEST = "ingest"
STALE_AFTER = timedelta(hours=36)
CONTROLLED_RERUN = "controlled_rerun"
BUILD_SITE = "build_site"


@dg.failure_hook(name="last_good_tables_stay")
def last_good_tables_stay(context: dg.HookContext) -> None:
    """Say in the run's log what a failure means for those who query."""
    context.log.error("ingestion_failed tables=unchanged: the last good tables stay in place")


def ingest_job(settings: Settings) -> AssetJob:
    """The way in: pull, normalize, publish and derive, in one run."""
    return dg.define_asset_job(
        INGEST,
        # The site has a job of its own: its pages take longer than all the tables together.
        selection=dg.AssetSelection.groups("traces", "manifests", "tables", "leaderboards")
        - dg.AssetSelection.assets(SITE),
        description="Ingest one dataset revision and rebuild every table that people query.",
        config=dg.RunConfig(
            ops={"trace_files": DatasetConfig(dataset=settings.dataset, name=settings.dataset_name)}
        ),
        tags={"kernelindex/job": INGEST},
        hooks={last_good_tables_stay},
    )


def controlled_rerun_job() -> AssetJob:
    """Measure published runs again; its configuration needs a reason, so that only people start it.

    No schedule, sensor or condition may launch it; a test walks all of them.
    """
    return dg.define_asset_job(
        CONTROLLED_RERUN,
        selection=dg.AssetSelection.groups(RERUN_GROUP),
        description="Measure chosen published runs on a GPU under the controlled protocol.",
        tags={"kernelindex/job": CONTROLLED_RERUN, "kernelindex/launched_by": "a person"},
    )


def build_site_job() -> AssetJob:
    """The pages, from the tables as they stand."""
    return dg.define_asset_job(
        BUILD_SITE,
        selection=dg.AssetSelection.assets(SITE),
        description="Write the static site; pages that would not change are not touched.",
        tags={"kernelindex/job": BUILD_SITE},
    )
