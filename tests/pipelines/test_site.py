"""`kernelindex site` and the job that does the same."""

import json
from pathlib import Path

import dagster as dg
import pytest

from assets.leaderboards.site.asset import SITE, TABLES
from assets.tables.warehouse import Warehouse
from pipelines.definitions import build_definitions
from tests.leaderboards.site.sites import publish_dataset, toy_dataset
from tests.pipelines.conftest import Deployment


@pytest.fixture
def ingested(deployment: Deployment) -> Deployment:
    dataset = toy_dataset(deployment.root / "dataset", {"fast": 0.01, "broken": None})
    publish_dataset(Warehouse(deployment.settings.warehouse), dataset)
    return deployment


def test_the_command_writes_a_site_into_the_warehouse(ingested: Deployment) -> None:
    done = ingested.run("site", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    home = Path(report["home"])
    assert home == ingested.settings.warehouse / "site" / "index.html"
    assert report["pages"]["runs"] == 2
    assert report["written"] == report["files"] == sum(1 for _ in _files(home.parent)) - 1
    again = ingested.run("site")
    assert again.returncode == 0, again.stderr
    assert "0 written" in again.stdout


def test_the_command_leaves_a_folder_of_other_things_alone(ingested: Deployment) -> None:
    folder = ingested.root / "letters"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    done = ingested.run("site", "--output", str(folder))
    assert done.returncode == 2
    assert "is no site and not empty" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


def test_the_command_says_so_where_nothing_was_ingested(deployment: Deployment) -> None:
    done = deployment.run("site")
    assert done.returncode == 2
    assert "run `kernelindex ingest` first" in done.stderr


def test_the_job_materializes_the_site(ingested: Deployment) -> None:
    definitions = build_definitions(ingested.settings)
    result = definitions.resolve_job_def("build_site").execute_in_process()
    [event] = result.get_asset_materialization_events()
    assert event.asset_key == dg.AssetKey(SITE)
    assert (ingested.settings.warehouse / "site" / "index.html").is_file()


def test_the_site_depends_on_tables_that_exist(deployment: Deployment) -> None:
    graph = build_definitions(deployment.settings).resolve_asset_graph()
    assert {dg.AssetKey(name) for name in TABLES} <= graph.get_all_asset_keys()
    ingest = build_definitions(deployment.settings).resolve_job_def("ingest")
    assert dg.AssetKey(SITE) not in ingest.asset_layer.executable_asset_keys


def _files(folder: Path):
    return (path for path in folder.rglob("*") if path.is_file())
