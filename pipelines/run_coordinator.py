"""How launched runs queue: reruns on one GPU one after the other, all else as Dagster has it.

`dagster.yaml` names this class and limits the runs of one tag value to one. A tag cannot follow
from a run's configuration in a job, a sensor or the launchpad; every launch, from wherever it
comes, passes through here.
"""

import dagster as dg
from dagster._core.run_coordinator.base import SubmitRunContext

from assets.reruns.asset import GPU_TAG, gpu_of
from assets.tables.warehouse import Warehouse
from pipelines.settings import Settings


class RunCoordinator(dg.QueuedRunCoordinator[dg.DagsterInstance]):
    """Dagster's queue, in which a rerun is tagged with the GPU that it will measure on."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Tag the run, and queue it."""
        run = context.dagster_run
        gpu = gpu_of(run.run_config, Warehouse(Settings.from_environment().warehouse))
        if gpu is not None:
            self._instance.add_run_tags(run.run_id, {GPU_TAG: gpu})
        return super().submit_run(context)
