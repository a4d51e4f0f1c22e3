"""Dagster's history kept in order: dead runs ended, old runs deleted, their space given back.

`python -m pipelines.history` does it once; `kernelindex dev` does so daily, `kernelindex ingest`
before each run. What is published, in the warehouse, is never touched.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from sqlalchemy.exc import DBAPIError

from assets.reruns.asset import GPU_TAG
from pipelines.instance import prepare_home
from pipelines.jobs import CONTROLLED_RERUN
from pipelines.liveness import end_dead_runs
from pipelines.settings import Keeping, Settings

_RERUN_STEP = "rerun_requests"
# Deletions are few pages of a large file; to write that anew is worth it for a part of it only.
_EMPTY_PART = 0.2
_LOGGER = logging.getLogger(__name__)


def main() -> None:
    """Put the history of this deployment in order."""
    home = Settings.from_environment().dagster_home
    prepare_home(home)
    with dg.DagsterInstance.get() as instance:
        tidy(instance, home, Keeping.from_environment())


def tidy(instance: dg.DagsterInstance, home: Path, keeping: Keeping) -> list[str]:
    """End dead runs and delete what is older than its limit; the ids of the runs deleted."""
    end_dead_runs(instance, home)
    try:
        return _forget(instance, home, keeping)
    except (OSError, DBAPIError) as error:
        # Whoever keeps order before a run still wants the run; the next one tries again.
        _LOGGER.warning("history_kept home=%s: old runs could not be deleted: %s", home, error)
        return []


def _forget(instance: dg.DagsterInstance, home: Path, keeping: Keeping) -> list[str]:
    old = list(_old_runs(instance, keeping, datetime.now(tz=UTC)))
    for run_id in old:
        _delete(instance, run_id)
    if old:
        _give_back(home)
    return old


def _old_runs(instance: dg.DagsterInstance, keeping: Keeping, now: datetime) -> Iterator[str]:
    """Finished runs past their limit, without those that the UI still tells the present by."""
    limits = [limit for limit in (keeping.runs, keeping.reruns) if limit is not None]
    if not limits:
        return
    ended = dg.RunsFilter(statuses=FINISHED_STATUSES, updated_before=now - min(limits))
    records = instance.get_run_records(filters=ended)
    if not records:
        return
    needed = _latest(instance)
    for record in records:
        run = record.dagster_run
        limit = keeping.reruns if _is_rerun(run) else keeping.runs
        age = now - _ended_at(record)
        if limit is not None and age > limit and run.run_id not in needed:
            yield run.run_id


def _latest(instance: dg.DagsterInstance) -> set[str]:
    """The last run of each job, and each run that made an asset as it stands."""
    needed: set[str] = set()
    for record in instance.get_asset_records():
        entry = record.asset_entry
        needed.update(filter(None, [entry.last_run_id]))
        for event in (entry.last_materialization_record, entry.last_observation_record):
            if event is not None:
                needed.add(event.run_id)
    last: dict[str, str] = {}
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=FINISHED_STATUSES)):
        last.setdefault(run.job_name, run.run_id)
    return needed | set(last.values())


def _is_rerun(run: dg.DagsterRun) -> bool:
    steps = run.run_config.get("ops") if isinstance(run.run_config, dict) else None
    asked = isinstance(steps, dict) and _RERUN_STEP in steps
    return run.job_name == CONTROLLED_RERUN or GPU_TAG in run.tags or asked


def _ended_at(record: dg.RunRecord) -> datetime:
    if record.end_time is not None:
        return datetime.fromtimestamp(record.end_time, tz=UTC)
    at = record.update_timestamp
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _delete(instance: dg.DagsterInstance, run_id: str) -> None:
    """The run, its events, its files of events and what its steps printed."""
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        # Dagster empties the file of a run's events and leaves it in its size.
        for ending in ("", "-wal", "-shm"):
            Path(storage.path_for_shard(run_id) + ending).unlink(missing_ok=True)


def _give_back(home: Path) -> None:
    """Write databases anew where much of them is empty; one in use waits for the next time."""
    for path in (home / "history").rglob("*.db"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=1)) as database:
            [pages] = database.execute("pragma page_count").fetchone()
            [empty] = database.execute("pragma freelist_count").fetchone()
            if empty > _EMPTY_PART * pages:
                database.execute("vacuum")
                database.execute("pragma wal_checkpoint(truncate)")


if __name__ == "__main__":
    main()
