"""Nothing automatic can launch a rerun: every schedule, sensor, condition and job is looked at."""

from pathlib import Path

import dagster as dg
import pytest

from assets.reruns.asset import RERUN_GROUP
from pipelines.definitions import build_definitions
from pipelines.jobs import CONTROLLED_RERUN
from pipelines.settings import Settings


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> dg.RepositoryDefinition:
    folder: Path = tmp_path_factory.mktemp("definitions")
    return build_definitions(Settings(folder, folder, "sample")).get_repository_def()


@pytest.fixture(scope="module")
def reruns(repository: dg.RepositoryDefinition) -> set[dg.AssetKey]:
    graph = repository.asset_graph
    found = {key for key in graph.get_all_asset_keys() if graph.get(key).group_name == RERUN_GROUP}
    assert {key.to_user_string() for key in found} == {
        "rerun_requests",
        "controlled_runs",
        "reruns/rerun_samples",
        "reruns/reproductions",
    }
    return found


def test_only_its_own_job_holds_them(
    repository: dg.RepositoryDefinition, reruns: set[dg.AssetKey]
) -> None:
    holding = {
        job.name
        for job in repository.get_all_jobs()
        if job.name != "__ASSET_JOB" and reruns & set(job.asset_layer.executable_asset_keys)
    }
    assert holding == {CONTROLLED_RERUN}


def test_no_schedule_or_sensor_can_reach_them(
    repository: dg.RepositoryDefinition, reruns: set[dg.AssetKey]
) -> None:
    for automatic in (*repository.schedule_defs, *repository.sensor_defs):
        for target in automatic.targets or []:
            assert target.job_name != CONTROLLED_RERUN, automatic.name
        names = {target.job_name for target in automatic.targets or []}
        for job in repository.get_all_jobs():
            if job.name in names:
                assert not reruns & set(job.asset_layer.executable_asset_keys), automatic.name
        selection = getattr(automatic, "asset_selection", None)
        if selection is not None:
            assert not reruns & selection.resolve(repository.asset_graph), automatic.name


def test_no_condition_or_legacy_policy_stands_on_them(
    repository: dg.RepositoryDefinition, reruns: set[dg.AssetKey]
) -> None:
    for key in reruns:
        node = repository.asset_graph.get(key)
        assert node.automation_condition is None, key
        assert node.auto_materialize_policy is None, key


def test_nothing_automatic_depends_on_them_eagerly(
    repository: dg.RepositoryDefinition, reruns: set[dg.AssetKey]
) -> None:
    graph = repository.asset_graph
    downstream = {child for key in reruns for child in graph.get(key).child_keys} - reruns
    assert downstream == set()


def test_a_launch_without_a_reason_is_invalid(repository: dg.RepositoryDefinition) -> None:
    job = repository.get_job(CONTROLLED_RERUN)
    selection = {"runs": {"runs": ["abcd"]}}
    for config in ({}, {"ops": {"rerun_requests": {"config": {"selection": selection}}}}):
        with pytest.raises(dg.DagsterInvalidConfigError):
            dg.validate_run_config(job, config)
    complete = {"selection": selection, "reason": "a test"}
    dg.validate_run_config(job, {"ops": {"rerun_requests": {"config": complete}}})


def test_materializing_everything_is_invalid_without_a_reason(
    repository: dg.RepositoryDefinition,
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(repository.get_job("__ASSET_JOB"), {})
