"""The Dagster assets of the rerun lane, group `reruns`; only a person starts them.

request -> measured -> published. What is done is in `collection.py`, `lane.py` and `results.py`.
Beside them `sample_reruns`, a part of ingestion: it imports what ships and can start nothing.
The Parquet tables have keys below `reruns/`, because the database has tables of the same names.
"""

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Protocol

import dagster as dg
from pydantic import Field, ValidationError

from assets.leaderboards.asset import PUBLICATION, WAREHOUSE_POOL
from assets.reruns.bundles import BundleError
from assets.reruns.collection import prepare_bundle
from assets.reruns.errors import RerunRefusedError, ResultRefusedError
from assets.reruns.job_bundles import read_bundle
from assets.reruns.lane import bundles_folder, chosen_launcher, gpu_name, measure, publish_job
from assets.reruns.launchers.drive import WorkerEvent
from assets.reruns.launchers.job_directory import DuplicateJobError, JobInUseError
from assets.reruns.launchers.launcher import LauncherError
from assets.reruns.plots import distribution_table, verdict_table
from assets.reruns.requests import RerunRequest
from assets.reruns.results import Imported, summary
from assets.reruns.sample_results import SAMPLE_DATASET, import_sample_results
from assets.tables.errors import WarehouseError
from assets.tables.ingestion import IngestionReport
from assets.tables.warehouse import Warehouse

RERUN_GROUP = "reruns"
SAMPLE_RERUNS = dg.AssetKey("sample_reruns")
GPU_TAG = "kernelindex/gpu"
"""Tag of a Dagster run that names its GPU; the instance starts one run for each value."""

_CONFIGURED = "configured"
_DEFAULT_GPU = "0"
_REQUEST = "request.json"
_JOB = "job.json"


class WarehouseProvider(Protocol):
    """A resource that opens the warehouse."""

    def open(self) -> Warehouse:
        """The warehouse, ready for use."""


class LauncherChoice(Enum):
    """Where it runs; `configured` is the one that the settings select."""

    configured = "configured"
    local = "local"
    ssh = "ssh"
    slurm = "slurm"


class RunsConfig(dg.Config):
    """Published runs by digest."""

    kind: Literal["runs"] = "runs"
    runs: list[str] = Field(description="run digests, or their unique beginnings")


class GroupConfig(dg.Config):
    """All implementations of one comparison group."""

    kind: Literal["group"] = "group"
    comparison_key: str = Field(description="comparison key, or its unique beginning")


class SolutionsConfig(dg.Config):
    """Named solutions of one operation."""

    kind: Literal["solutions"] = "solutions"
    operation: str
    solutions: list[str]
    workload: str | None = Field(default=None, description="identifier; all when empty")


class TopConfig(dg.Config):
    """The first of an operation's leaderboard."""

    kind: Literal["top"] = "top"
    operation: str
    top: int = Field(default=3, description="how many solutions")
    workloads_per_solution: int = Field(default=3, description="at most, the first by identifier")


class RerunConfig(dg.Config):
    """What to measure again, where, and why; nothing is launched without a reason."""

    reason: str = Field(description="why; kept with the results")
    selection: RunsConfig | GroupConfig | SolutionsConfig | TopConfig = Field(discriminator="kind")
    launcher: LauncherChoice = Field(default=LauncherChoice.configured)
    gpu: str = Field(
        default=_DEFAULT_GPU, description="GPU index; cpu is for trials, published nowhere"
    )
    samples: int = Field(default=200, description="timed calls; with fewer than 200 it is a trial")
    deadline_s: float = Field(default=3600.0, description="longest time of the whole job")
    runner: str | None = Field(default=None, description="who measures; for replication")

    def request(self) -> RerunRequest:
        """The same as a request; raises `pydantic.ValidationError`."""
        fields = self.model_dump(exclude={"runner", "launcher"})
        chosen = self.launcher is not LauncherChoice.configured
        return RerunRequest.model_validate(
            {**fields, "launcher": self.launcher.value if chosen else None}
        )


@dg.asset(group_name=RERUN_GROUP, kinds={"json"}, owners=["team:index"])
def rerun_requests(
    context: dg.AssetExecutionContext,
    config: RerunConfig,
    warehouse: dg.ResourceParam[WarehouseProvider],
) -> dg.MaterializeResult[None]:
    """A request checked against the index and the launcher, written as a job bundle."""
    opened = warehouse.open()
    folder = bundles_folder(opened) / context.run.run_id
    try:
        request = config.request()
        chosen_launcher(opened, request.launcher)
        prepared = prepare_bundle(opened, request, folder / "bundle")
    except (ValidationError, RerunRefusedError, WarehouseError, BundleError) as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    asked = {"request": request.model_dump(mode="json"), "runner": config.runner}
    (folder / _REQUEST).write_text(json.dumps(asked, indent=1) + "\n")
    listed = "\n".join(
        f"| `{run.run_digest[7:19]}` | {run.solution_name} | {run.definition_name} |"
        for run in prepared.chosen
    )
    return dg.MaterializeResult(
        metadata={
            "reason": request.reason,
            "bundle": dg.MetadataValue.path(str(folder / "bundle")),
            "bundle_id": prepared.bundle.bundle_id,
            "runs": dg.MetadataValue.md(
                f"| run | solution | definition |\n|---|---|---|\n{listed}"
            ),
            "left_out": dg.MetadataValue.md("\n".join(prepared.left_out) or "nothing"),
            "dagster/row_count": len(prepared.chosen),
        }
    )


@dg.asset(
    group_name=RERUN_GROUP,
    kinds={"cuda"},
    owners=["team:index"],
    deps=[rerun_requests],
)
def controlled_runs(
    context: dg.AssetExecutionContext, warehouse: dg.ResourceParam[WarehouseProvider]
) -> dg.MaterializeResult[None]:
    """The bundle measured by a worker on a GPU; ending this run ends the worker."""
    opened = warehouse.open()
    folder, asked = _request_of(opened, context.run.run_id)
    request = RerunRequest.model_validate(asked["request"])
    finished = 0

    def tell(event: WorkerEvent) -> None:
        nonlocal finished
        if event.name == "item_finished":
            finished += 1
            context.log.info(
                f"{finished} of {len(bundle.items)}: {event.fields.get('item_id')} "
                f"{event.fields.get('status')} {event.fields.get('reasons') or ''}".rstrip()
            )
        else:
            context.log.info(event.line)

    try:
        bundle = read_bundle(folder / "bundle")
        outcome = measure(chosen_launcher(opened, request.launcher), bundle, request.gpu, tell)
    except (
        RerunRefusedError, BundleError, LauncherError, JobInUseError, DuplicateJobError,
    ) as error:  # fmt: skip
        raise dg.Failure(str(error), allow_retries=False) from error
    if outcome.result is None:
        raise dg.Failure(
            f"job {outcome.job_id} is {outcome.status.state}: {outcome.status.detail}",
            allow_retries=False,
        )
    (folder / _JOB).write_text(json.dumps({"job_id": outcome.job_id}) + "\n")
    return dg.MaterializeResult(
        metadata={
            "job": outcome.job_id,
            "result": dg.MetadataValue.path(str(outcome.result)),
            "items": len(bundle.items),
        }
    )


@dg.multi_asset(
    name="rerun_publication",
    specs=[
        dg.AssetSpec(
            dg.AssetKey([RERUN_GROUP, name]),
            deps=[controlled_runs],
            description=description,
            group_name=RERUN_GROUP,
            kinds={"parquet"},
            owners=["team:index"],
        )
        for name, description in (
            ("rerun_samples", "Every timed call of the controlled runs, published as Parquet."),
            ("reproductions", "What each controlled run says about the run that it reproduces."),
        )
    ],
    # Without the pool of the warehouse: a slot is held for the length of a run, and measuring
    # would keep every ingestion waiting. The writer's lock of the warehouse is enough.
)
def rerun_publication(
    context: dg.AssetExecutionContext, warehouse: dg.ResourceParam[WarehouseProvider]
) -> Iterator[dg.MaterializeResult[None]]:
    """Publishes the result once, and rebuilds the database."""
    opened = warehouse.open()
    folder, asked = _request_of(opened, context.run.run_id)
    try:
        job_id = json.loads((folder / _JOB).read_text())["job_id"]
        runner = asked["runner"]
        imported = publish_job(opened, job_id, str(runner) if runner else None)
    except OSError as error:
        raise dg.Failure(
            "this run has measured nothing; launch the job `controlled_rerun`", allow_retries=False
        ) from error
    except ResultRefusedError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    except WarehouseError as error:
        raise dg.Failure(error.message, allow_retries=False) from error
    if not imported.has_score:
        raise dg.Failure(
            f"nothing was scored: {imported.fault or '; '.join(imported.unscored)}",
            allow_retries=False,
        )
    publication = imported.publication
    said: dict[str, Any] = {
        "publication": _publication_text(imported),
        "clean_calibration": imported.clean,
    }
    rows = {name: table.rows for name, table in publication.tables.items()} if publication else {}
    yield dg.MaterializeResult(
        asset_key=dg.AssetKey([RERUN_GROUP, "rerun_samples"]),
        metadata={
            **said,
            "latency": dg.MetadataValue.md(distribution_table(imported)),
            "dagster/row_count": rows.get("rerun_samples", 0),
        },
    )
    yield dg.MaterializeResult(
        asset_key=dg.AssetKey([RERUN_GROUP, "reproductions"]),
        metadata={
            **said,
            "verdicts": dg.MetadataValue.md(verdict_table(imported)),
            "counts": dict(summary(imported)),
            "no_score": dg.MetadataValue.md("\n".join(imported.unscored) or "nothing"),
            "dagster/row_count": rows.get("reproductions", 0),
        },
    )


@dg.asset(
    key=SAMPLE_RERUNS,
    group_name="tables",
    kinds={"parquet"},
    owners=["team:index"],
    deps=[PUBLICATION],
    pool=WAREHOUSE_POOL,
)
def sample_reruns(
    context: dg.AssetExecutionContext, warehouse: dg.ResourceParam[WarehouseProvider]
) -> dg.MaterializeResult[None]:
    """The finished controlled reruns that ship with the sample, published with it; none is run."""
    opened = warehouse.open()
    try:
        report = IngestionReport.load(opened.root, context.run.run_id)
        found = import_sample_results(opened) if report.dataset == SAMPLE_DATASET else []
    except (ResultRefusedError, WarehouseError) as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    published = sum(len(imported.runs) for imported in found if imported.publication is not None)
    report.model_copy(update={"controlled_reruns": published}).save(opened.root, context.run.run_id)
    return dg.MaterializeResult(metadata={"dagster/row_count": published})


def gpu_of(run_config: Mapping[str, Any], warehouse: Warehouse) -> str | None:
    """Value of `GPU_TAG` for a run with this configuration; None where it needs no GPU of its own.

    The configuration need not be valid: a run with a wrong one is refused in its first step.
    """
    try:
        config = run_config["ops"][rerun_requests.op.name]["config"]
        launcher = str(config.get("launcher") or _CONFIGURED)
        gpu = str(config.get("gpu") or _DEFAULT_GPU)
        return gpu_name(warehouse, None if launcher == _CONFIGURED else launcher, gpu)
    except (KeyError, TypeError, AttributeError, RerunRefusedError):
        return None


def _publication_text(imported: Imported) -> str:
    if imported.trial:
        because = " ".join(f"{reason}: {reason.explanation}" for reason in imported.trial)
        return f"none, this was a trial. {because}"
    return imported.publication.publication_id if imported.publication else "nothing new"


def _request_of(warehouse: Warehouse, run_id: str) -> tuple[Path, dict[str, object]]:
    folder = bundles_folder(warehouse) / run_id
    try:
        asked: dict[str, object] = json.loads((folder / _REQUEST).read_text())
    except OSError as error:
        raise dg.Failure(
            "this run has no request; launch the job `controlled_rerun`", allow_retries=False
        ) from error
    return folder, asked
