"""How the steps of a launched run are executed: one after the other, in one process that is alive.

Stages hand over files and take little time each, so one process is enough, in every job and for
"Materialize" on chosen assets too. It is the process of the run: while it lives it holds the run's
lock (`liveness.py`).
"""

from collections.abc import Iterator

import dagster as dg
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor

from pipelines.liveness import hold
from pipelines.settings import Settings


class _LivingExecutor(InProcessExecutor):
    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        """Execute the plan; the lock is the process's own, and free when that has ended."""
        if not plan_context.instance.is_ephemeral:
            name = f"The server's process of {plan_context.job_name}"
            hold(Settings.from_environment().dagster_home, plan_context.run_id, name)
        yield from super().execute(plan_context, execution_plan)


@dg.executor(name="in_process", config_schema={})
def one_process(_: dg.InitExecutorContext) -> InProcessExecutor:
    """All steps in the run's own process."""
    return _LivingExecutor(RetryMode.ENABLED)
