"""Dagster's history: which runs are deleted, which stay, and that their space is given back."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.runs.schema import RunsTable

from assets.reruns.asset import GPU_TAG
from pipelines.history import tidy
from pipelines.instance import prepare_home
from pipelines.jobs import CONTROLLED_RERUN
from pipelines.settings import Keeping, SettingsError

PADDING = "x" * 100_000


@dg.asset
def table() -> dg.MaterializeResult:
    """An asset whose events take space, as ours do."""
    print("printed")
    return dg.MaterializeResult(metadata={"text": PADDING})


@dg.op
def rerun_requests() -> None:
    """The step by which a launch of chosen assets is known to measure."""


@dg.job(name=CONTROLLED_RERUN)
def measuring() -> None:
    rerun_requests()


@dg.job
def chosen() -> None:
    rerun_requests()


MAKING = dg.Definitions([table], jobs=[dg.define_asset_job("making", "*")]).resolve_job_def(
    "making"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DAGSTER_HOME", "")
    prepare_home(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.get() as found:
        yield found


def age(instance: dg.DagsterInstance, run_id: str, days: float) -> str:
    """As if the run had ended so many days ago."""
    then = datetime.now(tz=UTC) - timedelta(days=days)
    with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        connection.execute(
            RunsTable.update()
            .where(RunsTable.c.run_id == run_id)
            .values(update_timestamp=then.replace(tzinfo=None), end_time=then.timestamp())
        )
    return run_id


def ran(instance: dg.DagsterInstance, days: float) -> str:
    """A run that made the asset so many days ago."""
    return age(instance, MAKING.execute_in_process(instance=instance).run_id, days)


def ended(instance: dg.DagsterInstance, job: dg.JobDefinition, days: float, **more: object) -> str:
    """A run that only stands in the history, as one that ended so many days ago."""
    status = dg.DagsterRunStatus.SUCCESS
    made = instance.create_run_for_job(job, status=status, **more)  # type: ignore[arg-type]
    return age(instance, made.run_id, days)


def size_of(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def names_of(home: Path) -> str:
    return " ".join(str(path.relative_to(home)) for path in home.rglob("*"))


def left(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


def test_old_runs_go_with_their_events_and_their_space(
    instance: dg.DagsterInstance, home: Path
) -> None:
    old = [ran(instance, days) for days in (90, 60, 31)]
    before = size_of(home)
    young = [ran(instance, 29), ran(instance, 0)]
    one = (size_of(home) - before) / 2
    assert all(run in names_of(home) for run in [*old, *young])

    assert set(tidy(instance, home, Keeping())) == set(old)
    assert left(instance) == set(young)
    names = names_of(home)
    assert not any(run in names for run in old)
    assert all(run in names for run in young)
    assert size_of(home) < before + 2 * one - 2.5 * one
    assert not instance.has_run(old[0])
    # What stays is whole, and what comes next has room.
    assert instance.all_logs(young[0], of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    assert tidy(instance, home, Keeping()) == []
    assert ran(instance, 0) in left(instance)


def test_the_last_run_of_a_job_and_of_an_asset_stay(
    instance: dg.DagsterInstance, home: Path
) -> None:
    older, last = ran(instance, 500), ran(instance, 400)
    # The asset was made anew by another job since, whose own last run this is.
    measured = [ended(instance, measuring, 800), ended(instance, measuring, 700)]
    assert set(tidy(instance, home, Keeping())) == {older, measured[0]}
    assert left(instance) == {last, measured[1]}
    assert instance.get_latest_materialization_event(table.key) is not None


def test_a_run_that_measured_stays_longer(instance: dg.DagsterInstance, home: Path) -> None:
    kept = [
        ended(instance, measuring, 364),
        ended(instance, chosen, 364, run_config={"ops": {"rerun_requests": {}}}),
        ended(instance, MAKING, 364, tags={GPU_TAG: "local-0"}),
    ]
    gone = [ended(instance, measuring, 366), ended(instance, MAKING, 31)]
    last = [ended(instance, job, 0) for job in (measuring, chosen, MAKING)]
    assert set(tidy(instance, home, Keeping())) == set(gone)
    assert left(instance) == {*kept, *last}


def test_nothing_goes_where_nothing_should(instance: dg.DagsterInstance, home: Path) -> None:
    ended(instance, MAKING, 5000)
    running = instance.create_run_for_job(MAKING, status=dg.DagsterRunStatus.STARTED).run_id
    waiting = instance.create_run_for_job(MAKING).run_id
    for run_id in (running, waiting):
        age(instance, run_id, 5000)
    ended(instance, MAKING, 0)
    assert tidy(instance, home, Keeping(None, None)) == []
    assert len(tidy(instance, home, Keeping(timedelta(days=1), None))) == 1
    assert {running, waiting} < left(instance)


def test_a_database_in_use_is_left_for_the_next_time(
    instance: dg.DagsterInstance, home: Path
) -> None:
    old, last = ended(instance, MAKING, 90), ended(instance, MAKING, 0)
    reading = sqlite3.connect(home / "history" / "runs" / "index.db")
    reading.execute("begin")
    reading.execute("select count(*) from event_logs").fetchone()
    assert tidy(instance, home, Keeping()) == [old]
    reading.close()
    assert left(instance) == {last}


@pytest.mark.parametrize(
    ("runs", "reruns", "expected"),
    [
        ("", "", Keeping(timedelta(days=30), timedelta(days=365))),
        ("7", "", Keeping(timedelta(days=7), timedelta(days=365))),
        ("0", "0", Keeping(None, None)),
        # A run that measured never goes before one that did not.
        ("400", "", Keeping(timedelta(days=400), timedelta(days=400))),
        ("30", "7", Keeping(timedelta(days=30), timedelta(days=30))),
        ("0", "7", Keeping(None, None)),
    ],
)
def test_the_limits_are_days(runs: str, reruns: str, expected: Keeping) -> None:
    environment = {"KERNELINDEX_KEEP_RUNS_DAYS": runs, "KERNELINDEX_KEEP_RERUNS_DAYS": reruns}
    assert Keeping.from_environment(environment) == expected


@pytest.mark.parametrize("text", ["-1", "1.5", "30d", "½", "٣", "99999999999999"])
def test_a_limit_that_is_no_number_of_days_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match=f"KERNELINDEX_KEEP_RUNS_DAYS: {text} is no number"):
        Keeping.from_environment({"KERNELINDEX_KEEP_RUNS_DAYS": text})
