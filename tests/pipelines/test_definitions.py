"""What the code location offers."""

from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.settings import Settings


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    root: Path = tmp_path_factory.mktemp("deployment")
    return build_definitions(Settings(root / "warehouse", root / "dagster", "sample"))


def test_definitions_load(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)


def test_the_ingest_job_covers_every_stage(definitions: dg.Definitions) -> None:
    keys = {
        key.to_user_string()
        for key in definitions.resolve_job_def("ingest").asset_layer.executable_asset_keys
    }
    assert {"trace_files", "manifests", "publication", "runs", "ranked_runs"} <= keys


def test_every_asset_is_described_owned_and_grouped(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, key
        assert node.owners, key
        assert node.kinds, key
        assert node.group_name in {"traces", "manifests", "tables", "leaderboards", "reruns"}, key


def test_the_launchpad_starts_with_the_configured_dataset(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "warehouse", tmp_path / "dagster", "my/dataset")
    job = build_definitions(settings).resolve_job_def("ingest")
    assert job.run_config is not None
    assert job.run_config["ops"]["trace_files"]["config"]["dataset"] == "my/dataset"
