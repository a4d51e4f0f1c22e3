"""How launched runs queue: reruns on one GPU one after the other, all else as Dagster has it.

`dagster.yaml` names this class and limits the runs of one tag value to one. A tag cannot follow
from a run's configuration in a job, a sensor or the launchpad; every launch, from wherever it
comes, passes through here. So does the queue, for which runs of dead processes are ended first.
"""

import dagster as dg
from dagster._core.run_coordinator.base import SubmitRunContext
from dagster._core.run_coordinator.queued_run_coordinator import RunQueueConfig

from assets.reruns.asset import GPU_TAG, gpu_of
from assets.tables.warehouse import Warehouse
from pipelines.liveness import end_dead_runs
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

    def get_run_queue_config(self) -> RunQueueConfig:
        """The limits of the queue; Dagster's daemon asks each time before it counts what runs.

        Dead runs are ended here, because a run that waits for one is never submitted again.
        """
        end_dead_runs(self._instance, Settings.from_environment().dagster_home)
        return super().get_run_queue_config()
