"""DAGSTER_HOME: its settings and its one server."""

from pathlib import Path

import dagster as dg
import pytest

from pipelines.instance import InstanceError, only_server, prepare_home


def test_a_new_home_has_our_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    prepare_home(tmp_path / "home")
    with dg.DagsterInstance.get() as instance:
        assert instance.telemetry_enabled is False
        assert instance.nux_enabled is False
        assert instance.run_monitoring_enabled
        assert instance.get_concurrency_config().pool_config.pool_granularity is not None


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    second = only_server(tmp_path)
    with only_server(tmp_path), pytest.raises(InstanceError, match="another server"):
        second.__enter__()
    with only_server(tmp_path):
        pass


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InstanceError, match="DAGSTER_HOME"):
        prepare_home(tmp_path / "file")
