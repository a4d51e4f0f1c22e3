"""The rerun lane from end to end for those who launch: settings, measuring, importing, repairing.

The command line and the Dagster assets call the same functions. Where things lie below the
warehouse: `reruns/bundles/<name>` (job bundles), `reruns/jobs/<job>` (what launchers keep),
`reruns/launchers.json` (settings, optional), `reruns/kernelindex_worker.pyz` (the worker).
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from assets.leaderboards.build import build_database
from assets.reruns.errors import Refusal, RerunRefusedError, ResultRefusedError
from assets.reruns.launchers.drive import JobOutcome, WorkerEvent, run_job
from assets.reruns.launchers.job import JobRecord, JobState, RerunJob
from assets.reruns.launchers.job_directory import RECORD, JobDirectory
from assets.reruns.launchers.launcher import Launcher, launcher_for
from assets.reruns.launchers.reconcile import ReconcileFinding
from assets.reruns.launchers.reconcile import reconcile as reconcile_jobs
from assets.reruns.launchers.settings import (
    LauncherKind,
    LauncherNotConfiguredError,
    LaunchersSettings,
    LocalSettings,
)
from assets.reruns.results import Imported, import_result
from assets.reruns.worker.build import FILE_NAME, build_worker
from assets.reruns.worker.job import JobBundle
from assets.tables.warehouse import Warehouse

SETTINGS_VARIABLE = "KERNELINDEX_LAUNCHERS"
PYTHON_VARIABLE = "KERNELINDEX_TORCH_PYTHON"
_IMPORTED = "imported.json"


def bundles_folder(warehouse: Warehouse) -> Path:
    """Where job bundles are written unless another folder is named."""
    return warehouse.root / "reruns" / "bundles"


def jobs_folder(warehouse: Warehouse) -> Path:
    """Where launchers keep their jobs."""
    return warehouse.root / "reruns" / "jobs"


def worker_file(warehouse: Warehouse) -> Path:
    """The worker as one file, built anew so that it is that of this version."""
    folder = warehouse.root / "reruns"
    folder.mkdir(parents=True, exist_ok=True)
    return build_worker(folder / FILE_NAME)


def launchers_settings(
    warehouse: Warehouse, environment: Mapping[str, str] = os.environ
) -> LaunchersSettings:
    """The settings file that KERNELINDEX_LAUNCHERS names, else `reruns/launchers.json`.

    Without either, there is the launcher `local` with the interpreter of
    KERNELINDEX_TORCH_PYTHON (default `python3`).

    Raises:
        RerunRefusedError: a settings file that cannot be read.
    """
    named = environment.get(SETTINGS_VARIABLE)
    path = Path(named).expanduser() if named else warehouse.root / "reruns" / "launchers.json"
    if named or path.is_file():
        try:
            return LaunchersSettings.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise RerunRefusedError(
                Refusal.LAUNCHER_NOT_CONFIGURED,
                f"{path}: no readable launcher settings ({' '.join(str(error).split())}); see "
                "docs/launchers.md",
            ) from error
    python = environment.get(PYTHON_VARIABLE) or "python3"
    return LaunchersSettings(local=LocalSettings(worker_file=worker_file(warehouse), python=python))


def chosen_launcher(warehouse: Warehouse, kind: LauncherKind | None) -> Launcher:
    """A launcher that could start a worker now.

    Raises:
        RerunRefusedError: it is not configured, or what its settings name is not there.
    """
    try:
        settings = launchers_settings(warehouse).chosen(kind)
        launcher = launcher_for(settings, jobs_folder(warehouse))
        launcher.check()
    except LauncherNotConfiguredError as error:
        raise RerunRefusedError(Refusal.LAUNCHER_NOT_CONFIGURED, str(error)) from error
    return launcher


def measure(
    launcher: Launcher,
    bundle: JobBundle,
    gpu: str | None,
    on_event: Callable[[WorkerEvent], None],
    should_cancel: Callable[[], bool] = lambda: False,
) -> JobOutcome:
    """Run a job bundle to its end; a job that another process started is attached to.

    Raises:
        LauncherError, BundleError, JobInUseError: as `launchers.drive.run_job`.
    """
    job = RerunJob(
        job_id=f"rerun-{bundle.bundle_id[7:23]}",
        bundle_dir=bundle.root,
        deadline_s=bundle.limits.deadline_s,
        gpu=gpu,
    )
    return run_job(launcher, job, on_event, should_cancel)


def publish_result(
    warehouse: Warehouse,
    bundle_folder: Path,
    result_folder: Path,
    runner: str | None = None,
    *,
    rebuild: bool = True,
) -> Imported:
    """Import a result bundle, and rebuild the database where that brought anything.

    Raises:
        ResultRefusedError: nothing was published.
        WarehouseError: the warehouse cannot be read or written.
    """
    imported = import_result(warehouse, bundle_folder, result_folder, runner)
    if imported.publication is not None and rebuild:
        build_database(warehouse)
    return imported


def publish_job(warehouse: Warehouse, job_id: str, runner: str | None = None) -> Imported:
    """Import the collected result of a job, and note in its directory that this was done.

    Raises:
        ResultRefusedError: as `publish_result`.
    """
    folder = jobs_folder(warehouse) / job_id
    imported = publish_result(warehouse, folder / "bundle", folder / "result", runner)
    note = {
        "publication": imported.publication.publication_id if imported.publication else None,
        "runs": [run.run_digest for run in imported.runs],
    }
    temporary = folder / f".{_IMPORTED}.tmp"
    temporary.write_text(json.dumps(note, indent=1) + "\n")
    temporary.replace(folder / _IMPORTED)
    return imported


@dataclass(frozen=True)
class JobLine:
    """Where one job stands, for people."""

    job_id: str
    state: str
    detail: str
    imported: bool
    prepared_at: str


def jobs(warehouse: Warehouse) -> list[JobLine]:
    """Every job of this warehouse, oldest first."""
    found: list[JobLine] = []
    root = jobs_folder(warehouse)
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if not (folder / RECORD).is_file():
            continue
        record = JobDirectory(folder).read()
        found.append(
            JobLine(
                job_id=record.job_id,
                state=str(record.status.state),
                detail=record.status.detail,
                imported=(folder / _IMPORTED).is_file(),
                prepared_at=record.prepared_at.isoformat(timespec="seconds"),
            )
        )
    return sorted(found, key=lambda line: line.prepared_at)


def reconcile(warehouse: Warehouse) -> tuple[list[ReconcileFinding], dict[str, str]]:
    """Repair what killed processes left, and publish finished results that nobody published.

    Returns what was found, and by job what became of its result.
    """
    root = jobs_folder(warehouse)
    findings = reconcile_jobs(root) if root.is_dir() else []
    published: dict[str, str] = {}
    for line in jobs(warehouse):
        folder = root / line.job_id
        record: JobRecord = JobDirectory(folder).read()
        finished = record.status.state is JobState.FINISHED and record.collected_at is not None
        if line.imported or not finished:
            continue
        try:
            imported = publish_job(warehouse, line.job_id)
        except ResultRefusedError as error:
            published[line.job_id] = f"refused: {error}"
            continue
        record_id = imported.publication.publication_id if imported.publication else "known"
        published[line.job_id] = f"published {len(imported.runs)} runs ({record_id})"
    return findings, published
