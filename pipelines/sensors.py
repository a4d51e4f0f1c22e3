"""What is watched: the head of a remote dataset."""

import os
from datetime import timedelta

import dagster as dg

from assets.traces.asset import DatasetConfig
from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.hub import head_revision
from assets.traces.hub_location import parse_hub_location
from assets.traces.hub_settings import HubSettings
from pipelines.jobs import AssetJob
from pipelines.resources import WarehouseResource
from pipelines.settings import Settings

NEW_REVISION = "new_revision"


def new_revision(job: AssetJob, settings: Settings) -> dg.SensorDefinition:
    """Start one ingestion for each new head of the configured dataset.

    The cursor is the last head that was seen. A hub that cannot be asked is no error: the next
    tick asks again.
    """

    @dg.sensor(
        name=NEW_REVISION,
        job=job,
        minimum_interval_seconds=int(timedelta(minutes=15).total_seconds()),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Watch the head of {settings.dataset}.",
    )
    def watch(
        context: dg.SensorEvaluationContext, warehouse: WarehouseResource
    ) -> dg.SensorResult | dg.SkipReason:
        try:
            head = head_revision(
                settings.dataset,
                store=warehouse.open().store,
                settings=HubSettings.from_environment(os.environ),
            )
        except TransientDatasetError as error:
            return dg.SkipReason(f"the hub was not reached: {error.message}")
        except DatasetError as error:
            return dg.SkipReason(f"{settings.dataset} cannot be watched: {error.message}")
        if head == context.cursor:
            return dg.SkipReason(f"{settings.dataset} is still at {head[:12]}")
        dataset = parse_hub_location(settings.dataset).dataset
        request = dg.RunRequest(
            run_key=f"{dataset}@{head}",
            run_config=dg.RunConfig(
                ops={
                    "trace_files": DatasetConfig(dataset=f"hf://datasets/{dataset}", revision=head)
                }
            ),
            tags={"kernelindex/launched_by": NEW_REVISION, "kernelindex/revision": head},
        )
        context.log.info(f"head_seen dataset={dataset} revision={head}")
        return dg.SensorResult(run_requests=[request], cursor=head)

    return watch
