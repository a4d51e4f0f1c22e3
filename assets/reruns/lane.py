"""The rerun lane from end to end for those who launch: settings, measuring, importing, repairing.

The command line and the Dagster assets call the same functions. Where things lie below the
warehouse: `reruns/bundles/<name>` (job bundles), `reruns/jobs/<job>` (what launchers keep),
`reruns/launchers.json` (settings, optional), `reruns/kernelindex_worker.pyz` (the worker).
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from assets.answers.units import count_text
from assets.leaderboards.build import build_database
from assets.leaderboards.reproduction import examine_database
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
    found = _settings_file(warehouse, environment)
    if found is not None:
        return found
    python = environment.get(PYTHON_VARIABLE) or "python3"
    return LaunchersSettings(local=LocalSettings(worker_file=worker_file(warehouse), python=python))


def _settings_file(
    warehouse: Warehouse, environment: Mapping[str, str]
) -> LaunchersSettings | None:
    named = environment.get(SETTINGS_VARIABLE)
    path = Path(named).expanduser() if named else warehouse.root / "reruns" / "launchers.json"
    if not named and not os.path.lexists(path):
        return None
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no plain file")
        return LaunchersSettings.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise RerunRefusedError(
            Refusal.LAUNCHER_NOT_CONFIGURED,
            f"{path}: no readable launcher settings ({' '.join(str(error).split())}); see "
            "docs/launchers.md",
        ) from error


def gpu_name(
    warehouse: Warehouse,
    kind: str | None,
    gpu: str,
    environment: Mapping[str, str] = os.environ,
) -> str | None:
    """What only one rerun at a time may have; None where a batch system deals out GPUs.

    `kind` is a launcher's, or None for the one that the settings select.

    Raises:
        RerunRefusedError: a settings file that cannot be read.
    """
    if kind is None:
        found = _settings_file(warehouse, environment)
        kind = found.selected if found is not None else "local"
    return None if kind == "slurm" else f"{kind}-{gpu}"


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
    warehouse: Warehouse, bundle_folder: Path, result_folder: Path, runner: str | None = None
) -> Imported:
    """Import a result bundle, and rebuild the database where it lacks what is published.

    Raises:
        ResultRefusedError: nothing was published.
        WarehouseError: the warehouse cannot be read or written.
    """
    imported = import_result(warehouse, bundle_folder, result_folder, runner)
    # Not only where this import brought something: an earlier one may have died before the build.
    if examine_database(warehouse, rebuild=False).findings:
        build_database(warehouse)
    return imported


def publish_job(warehouse: Warehouse, job_id: str, runner: str | None = None) -> Imported:
    """Import the collected result of a job, and note in its directory what became of it.

    Raises:
        ResultRefusedError: as `publish_result`.
    """
    folder = jobs_folder(warehouse) / job_id
    imported = publish_result(warehouse, folder / "bundle", folder / "result", runner)
    note = {
        "publication": imported.publication.publication_id if imported.publication else None,
        "trial": [str(reason) for reason in imported.trial],
        "runs": [] if imported.trial else [run.run_digest for run in imported.runs],
    }
    temporary = folder / f".{_IMPORTED}.tmp"
    temporary.write_text(json.dumps(note, indent=1) + "\n")
    temporary.replace(folder / _IMPORTED)
    return imported


@dataclass(frozen=True)
class JobLine:
    """Where one job stands, for people; the result of a trial is imported and not published."""

    job_id: str
    state: str
    detail: str
    imported: bool
    trial: bool
    prepared_at: str


def jobs(warehouse: Warehouse) -> list[JobLine]:
    """Every job of this warehouse, oldest first; those whose record is damaged come last."""
    return [_line(path, record) for path, record in _records(warehouse)]


def reconcile(warehouse: Warehouse) -> tuple[list[ReconcileFinding], dict[str, str]]:
    """Repair what killed processes left, and publish finished results that nobody published.

    Returns what was found, and by job what became of its result.
    """
    findings = reconcile_jobs(jobs_folder(warehouse))
    published: dict[str, str] = {}
    for folder, record in _records(warehouse):
        finished = record is not None and record.status.state is JobState.FINISHED
        if record is None or not finished or record.collected_at is None:
            continue
        if (folder / _IMPORTED).is_file():
            continue
        try:
            imported = publish_job(warehouse, record.job_id)
        except ResultRefusedError as error:
            published[record.job_id] = f"refused: {error}"
            continue
        published[record.job_id] = _said(imported)
    return findings, published


def _said(imported: Imported) -> str:
    if not imported.has_score:
        return f"nothing was scored: {imported.fault or '; '.join(imported.unscored)}"
    if imported.trial:
        return f"a trial of {count_text(len(imported.runs), 'run')}, published nowhere"
    where = imported.publication.publication_id if imported.publication else "known"
    return f"published {count_text(len(imported.runs), 'run')} ({where})"


def _records(warehouse: Warehouse) -> list[tuple[Path, JobRecord | None]]:
    root = jobs_folder(warehouse)
    found: list[tuple[Path, JobRecord | None]] = []
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if os.path.lexists(folder / RECORD):
            if not (folder / RECORD).is_file():
                found.append((folder, None))
                continue
            try:
                found.append((folder, JobDirectory(folder).read()))
            except ValidationError:
                found.append((folder, None))
    last = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda job: job[1].prepared_at if job[1] else last)


def _line(folder: Path, record: JobRecord | None) -> JobLine:
    imported = (folder / _IMPORTED).is_file()
    if record is None:
        detail = f"{folder / RECORD} cannot be read"
        return JobLine(folder.name, "damaged", detail, imported, _is_trial(folder), "")
    return JobLine(
        job_id=record.job_id,
        state=str(record.status.state),
        detail=record.status.detail,
        imported=imported,
        trial=_is_trial(folder),
        prepared_at=record.prepared_at.isoformat(timespec="seconds"),
    )


def _is_trial(folder: Path) -> bool:
    try:
        note = json.loads((folder / _IMPORTED).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(note, dict) and bool(note.get("trial"))
