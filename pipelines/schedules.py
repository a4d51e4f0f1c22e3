"""When ingestion runs by itself: only where a remote dataset is configured."""

import dagster as dg

from pipelines.jobs import AssetJob
from pipelines.settings import Settings

DAILY_INGEST = "daily_ingest"


def daily_ingest(job: AssetJob, settings: Settings) -> dg.ScheduleDefinition:
    """The mirror: ingest the configured dataset at a fixed time of the day.

    A day on which nothing changed costs one conditional request and ends as "nothing new".
    """
    return dg.ScheduleDefinition(
        name=DAILY_INGEST,
        job=job,
        cron_schedule=settings.cron,
        execution_timezone=settings.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Ingest {settings.dataset} ({settings.cron}, {settings.time_zone}).",
        tags={"kernelindex/launched_by": DAILY_INGEST},
    )
