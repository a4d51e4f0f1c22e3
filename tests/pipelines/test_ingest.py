"""`kernelindex ingest` as people and scripts use it."""

import json
import shutil
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from typer.testing import CliRunner

from assets.reruns.sample_results import import_sample_results
from assets.tables.warehouse import Warehouse
from pipelines.cli import app
from pipelines.definitions import build_definitions
from pipelines.instance import prepare_home
from pipelines.jobs import INGEST
from tests.builders import PUBLIC
from tests.pipelines.conftest import Deployment
from tests.warehouses import ingest_into

SEED_REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"


def adds_up(report: dict) -> bool:
    return all(
        report["read"][kind]
        == report["published"][kind]
        + report["known"][kind]
        + report["quarantined"][kind]
        + report["workload_rows"][kind]
        for kind in report["read"]
    )


def test_the_sample_is_published_once_and_ranked(ingested: tuple[Deployment, dict]) -> None:
    deployment, first = ingested
    assert first["publication"]
    assert first["published"]["trace"] == first["read"]["trace"] >= 60
    assert adds_up(first)
    with duckdb.connect(str(deployment.settings.warehouse / "kernelindex.duckdb"), True) as index:
        for table in ("ranked_runs", "records", "leaderboard_authors", "leaderboard_operations"):
            assert index.table(table).limit(1).fetchall(), table

    files = deployment.published_files()
    again = deployment.ingest("--dataset", "sample")
    assert again["publication"] is None
    assert again["known"]["trace"] == first["read"]["trace"]
    assert again["reasons"] == first["reasons"]
    assert adds_up(again)
    assert deployment.published_files() == files


def test_the_run_stands_in_the_history_of_the_ui(
    ingested: tuple[Deployment, dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, _ = ingested
    monkeypatch.setenv("DAGSTER_HOME", str(deployment.settings.dagster_home))
    with dg.DagsterInstance.get() as instance:
        run = instance.get_runs()[-1]
        assert run.job_name == "ingest"
        assert run.status == dg.DagsterRunStatus.SUCCESS
        (publication,) = instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey("publication")), limit=1, ascending=True
        ).records
        assert publication.asset_materialization is not None
        metadata = publication.asset_materialization.metadata
    assert int(str(metadata["dagster/row_count"].value)) > 0
    assert "| trace |" in str(metadata["documents"].value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "no/such/directory"), "no such dataset"),
        (("--dataset", "empty"), "no dataset files"),
        (("--dataset", "sample", "--authors", "nobody"), "no author 'nobody'"),
        (("--dataset", "sample", "--revision", "latest"), "40 lower-case hex digits"),
        (("--dataset", "sample", "--authors", " , "), "names no author"),
    ],
)
def test_bad_input_is_one_clear_line_and_publishes_nothing(
    deployment: Deployment,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (deployment.root / "empty").mkdir()
    monkeypatch.chdir(deployment.root)
    done = CliRunner().invoke(app, ["ingest", *arguments], env=deployment.environment)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not any("00000001" in name for name in deployment.published_files())


def test_a_warehouse_that_cannot_be_written_is_named(deployment: Deployment) -> None:
    in_the_way = deployment.root / "file"
    in_the_way.touch()
    environment = {**deployment.environment, "KERNELINDEX_WAREHOUSE": str(in_the_way)}
    done = CliRunner().invoke(app, ["ingest"], env=environment)
    assert done.exit_code == 2
    assert str(in_the_way) in done.stderr
    assert "KERNELINDEX_WAREHOUSE" in done.stderr


def test_a_file_that_is_no_json_stops_nothing_else(deployment: Deployment) -> None:
    from assets.traces.pull import SAMPLE_DIRECTORY

    dataset = deployment.root / "dataset"
    shutil.copytree(SAMPLE_DIRECTORY, dataset)
    broken = next((dataset / "solutions" / "baseline").rglob("*.json"))
    broken.write_text("{ this is no JSON")
    report = deployment.ingest("--dataset", str(dataset), "--authors", "baseline")
    assert report["published"]["solution"] == 4
    assert report["quarantined"]["solution"] == 1
    assert report["reasons"]["BAD_JSON"] == 1
    assert report["published"]["trace"] + report["quarantined"]["trace"] == 22
    assert adds_up(report)


def test_the_published_seeds_have_their_published_digests(tmp_path: Path, shared: Path) -> None:
    seeds = shared / "seeds" / "flashinfer-trace"
    if not seeds.is_dir():
        pytest.skip("the published run pages (../shared/seeds) are not here")
    ingest_into(tmp_path, dataset=str(seeds), revision=SEED_REVISION, name=PUBLIC)
    with duckdb.connect(str(Warehouse(tmp_path).database), True) as index:
        (run,) = index.sql(
            "select run_digest, implementation_digest, workload_digest, environment_digest,"
            " protocol_digest, comparison_key from runs"
        ).fetchall()
        workloads = {
            row[0][:15] for row in index.sql("from workloads select workload_digest").fetchall()
        }
        ((reason, path),) = index.sql("select reason, path from quarantine").fetchall()
    assert run[0] == "sha256:3ccbed69361cadec2cf61fb18f87e5a25d938611a200b685e69024d2a8107ab0"
    assert [digest[:15] for digest in run[1:]] == [
        "sha256:b6c7a77a",
        "sha256:ce816742",
        "sha256:f4292a8b",
        "sha256:7d44d206",
        "sha256:5bb9526d",
    ]
    assert workloads == {"sha256:ce816742", "sha256:e2f20ad1"}
    assert reason == "UNKNOWN_SOLUTION"
    assert path.endswith("gqa_paged_decode_h32_kv4_d128_ps1.jsonl")


@pytest.mark.integration
def test_the_job_of_the_ui_gives_what_the_command_gives(
    ingested: tuple[Deployment, dict], deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With launcher settings under which any attempt to measure would leave a trace."""
    trace = deployment.root / "started"
    python = deployment.root / "python"
    python.write_text(f"#!/bin/sh\ntouch '{trace}'\n")
    python.chmod(0o755)
    launchers = deployment.root / "launchers.json"
    launchers.write_text(json.dumps({"local": {"worker_file": str(python), "python": str(python)}}))
    monkeypatch.setenv("KERNELINDEX_LAUNCHERS", str(launchers))
    monkeypatch.setenv("DAGSTER_HOME", "")
    settings = deployment.settings
    prepare_home(settings.dagster_home)
    job = build_definitions(settings).resolve_job_def(INGEST)
    with dg.DagsterInstance.get() as instance:
        for expected in (41, 0):
            result = job.execute_in_process(instance=instance)
            assert result.success
            [imported] = result.asset_materializations_for_node("sample_reruns")
            assert imported.metadata["dagster/row_count"].value == expected
    assert not trace.exists()
    assert not (settings.warehouse / "reruns").exists()

    # What the UI shows of a table is what the database has.
    shown = {
        made.asset_key.to_user_string(): made.metadata["dagster/row_count"].value
        for made in result.asset_materializations_for_node("database")
        if "dagster/row_count" in made.metadata
    }
    counts = {}
    by_command, _ = ingested
    for name, root in (("ui", settings.warehouse), ("command", by_command.settings.warehouse)):
        with duckdb.connect(str(root / "kernelindex.duckdb"), True) as index:
            counts[name] = {
                table: index.table(table).count("*").fetchall()[0][0] for table in shown
            }
    assert counts["ui"] == counts["command"] == shown
    assert counts["ui"]["reproductions"] == 41
    assert counts["ui"]["verified_records"] > 0


def test_some_authors_of_the_sample_are_ingested_without_its_reruns(
    deployment: Deployment,
) -> None:
    report = deployment.ingest("--dataset", "sample", "--authors", "baseline")
    assert report["publication"]
    assert report["controlled_reruns"] == 0
    # They come with the rest of the sample.
    ingest_into(deployment.settings.warehouse)
    [session] = import_sample_results(Warehouse(deployment.settings.warehouse))
    assert len(session.runs) == 41
