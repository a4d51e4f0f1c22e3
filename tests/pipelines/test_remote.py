"""A deployment that mirrors a remote dataset: its schedule, its sensor, its daily run.

The hub is a real HTTP server on loopback that serves the bundled sample.
"""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.traces.pull import SAMPLE_DIRECTORY
from pipelines.definitions import build_definitions
from pipelines.ingest import IngestError, IngestRequest, run_ingest
from pipelines.settings import Settings
from tests.traces.hub_server import DATASET, LoopbackHub

LOCATION = f"hf://datasets/{DATASET}"


def sample_files() -> dict[str, bytes]:
    return {
        str(path.relative_to(SAMPLE_DIRECTORY)): path.read_bytes()
        for path in SAMPLE_DIRECTORY.rglob("*.json*")
        if path.name != "dataset.json"
    }


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    server = LoopbackHub()
    server.commit(sample_files())
    monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
    monkeypatch.setenv("KERNELINDEX_HUB_HOSTS", server.storage)
    yield server
    server.close()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    return Settings(tmp_path / "warehouse", tmp_path / "dagster", LOCATION)


def tick(
    settings: Settings, instance: dg.DagsterInstance, cursor: str | None
) -> dg.SensorResult | dg.SkipReason:
    definitions = build_definitions(settings)
    with dg.build_sensor_context(
        instance=instance,
        cursor=cursor,
        definitions=definitions,
        resources={"warehouse": definitions.resources["warehouse"]}
        if definitions.resources
        else None,
    ) as context:
        outcome = definitions.resolve_sensor_def("new_revision")(context)
    assert isinstance(outcome, dg.SensorResult | dg.SkipReason)
    return outcome


def test_the_sample_schedules_nothing(tmp_path: Path) -> None:
    definitions = build_definitions(Settings(tmp_path / "w", tmp_path / "d", "sample"))
    assert not definitions.schedules
    assert not definitions.sensors


def test_the_schedule_is_at_the_configured_time(tmp_path: Path) -> None:
    settings = Settings(
        tmp_path / "w", tmp_path / "d", LOCATION, cron="30 2 * * 1", time_zone="Europe/Berlin"
    )
    schedule = build_definitions(settings).resolve_schedule_def("daily_ingest")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 2 * * 1", "Europe/Berlin")
    assert schedule.job_name == "ingest"


def test_leaderboards_of_a_mirror_go_stale(tmp_path: Path) -> None:
    remote = build_definitions(Settings(tmp_path / "w", tmp_path / "d", LOCATION))
    local = build_definitions(Settings(tmp_path / "w", tmp_path / "d", "sample"))
    key = dg.AssetKey("ranked_runs")
    assert remote.resolve_asset_graph().get(key).freshness_policy is not None
    assert local.resolve_asset_graph().get(key).freshness_policy is None


def test_a_new_head_starts_one_run_and_the_same_head_none(
    hub: LoopbackHub, settings: Settings
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        first = tick(settings, instance, None)
        assert isinstance(first, dg.SensorResult)
        (request,) = first.run_requests or []
        config = request.run_config["ops"]["trace_files"]["config"]
        assert config["dataset"] == LOCATION
        assert config["revision"] == first.cursor
        again = tick(settings, instance, first.cursor)
        assert isinstance(again, dg.SkipReason)
        assert "still at" in str(again.skip_message)
        hub.commit({**sample_files(), "definitions/x/x.json": b"{}"})
        moved = tick(settings, instance, first.cursor)
        assert isinstance(moved, dg.SensorResult)
        assert moved.cursor != first.cursor


def test_the_sensor_is_quiet_while_the_hub_is_down(
    hub: LoopbackHub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with dg.DagsterInstance.ephemeral() as instance:
        outcome = tick(settings, instance, "seen")
    assert isinstance(outcome, dg.SkipReason)
    assert "not reached" in str(outcome.skip_message)


@pytest.mark.integration
def test_a_mirror_is_ingested_once_replayed_offline_and_survives_a_bad_day(
    hub: LoopbackHub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_ingest(settings, IngestRequest(LOCATION))
    assert first.published["trace"] == 102
    requests = len(hub.requests)
    again = run_ingest(settings, IngestRequest(LOCATION))
    assert again.publication is None
    assert len(hub.requests) - requests <= 2

    database = settings.warehouse / "kernelindex.duckdb"
    before = database.stat().st_mtime_ns
    hub.close()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = run_ingest(settings, IngestRequest(LOCATION))
    assert offline.known["trace"] == 102
    with pytest.raises(IngestError, match="own/other"):
        run_ingest(settings, IngestRequest("hf://datasets/own/other"))
    assert database.stat().st_mtime_ns >= before
