"""No damage ends in a traceback, and what a killed command left is finished by the next."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from assets.tables.failpoints import VARIABLE
from assets.tables.warehouse import Warehouse
from pipelines.cli import app
from tests.pipelines.conftest import ROOT, Deployment, Run

READING = (
    ("status", "--json"),
    ("show", "{run}"),
    ("source", "{run}"),
    ("query", "from ranked_runs"),
    ("quarantine",),
    ("top", "rmsnorm_h128"),
)
CORRECTION = (
    "--author", "A. Reader", "--reason", "throttled", "--evidence", "https://example.org/log",
)  # fmt: skip


def leader(root: Path) -> str:
    with duckdb.connect(str(root / "kernelindex.duckdb"), read_only=True) as connection:
        query = "select run_digest from ranked_runs where rank = 1 order by all limit 1"
        [(run,)] = connection.sql(query).fetchall()
        return str(run)


def test_flipped_bytes_in_the_database_end_in_one_line(change: Run, warehouse_copy: Path) -> None:
    run, rng = leader(warehouse_copy), random.Random(0)
    database = warehouse_copy / "kernelindex.duckdb"
    intact = database.read_bytes()
    codes = set()
    for arguments in READING * 3:
        data = bytearray(intact)
        for _ in range(rng.choice((1, 20, 500))):
            data[rng.randrange(len(data))] ^= 0xFF
        database.write_bytes(data)
        asked = [part.format(run=run) for part in arguments]
        result = CliRunner().invoke(app, asked, prog_name="kernelindex")
        assert result.exception is None or isinstance(result.exception, SystemExit), arguments
        assert result.exit_code == 0 or "error: " in result.output, arguments
        codes.add(result.exit_code)
    assert codes == {0, 2}


def put_a_folder_there(path: Path) -> None:
    if path.is_file():
        path.unlink()
    path.mkdir()
    (path / "something").write_text("of a person")


@pytest.mark.parametrize(
    "name",
    [
        ".writer.lock",
        "publications/{newest}/publication.json",
        pytest.param("kernelindex.duckdb", marks=pytest.mark.integration),
        pytest.param("chain/head", marks=pytest.mark.integration),
    ],
)
def test_a_folder_in_the_place_of_a_file_is_one_line(
    change: Run, warehouse_copy: Path, name: str
) -> None:
    run = leader(warehouse_copy)
    newest = Warehouse(warehouse_copy).publications()[-1].publication_id
    put_a_folder_there(warehouse_copy / name.format(newest=f"publication_id={newest}"))
    assert "error: " in change("correct", "retract", run, *CORRECTION, code=2).output
    if name != ".writer.lock":
        assert "everything is as it should be" in change("doctor", "--repair").output
        assert change("status").exit_code == 0


def test_a_lost_publication_is_an_error_until_it_is_accepted_by_name(
    change: Run, warehouse_copy: Path
) -> None:
    warehouse = Warehouse(warehouse_copy)
    newest = warehouse.publications()[-1].publication_id
    shutil.rmtree(warehouse.folder_of(newest))
    shutil.rmtree(warehouse_copy / "raw")
    for arguments in (("doctor", "--quick"), ("doctor", "--repair", "--quick")):
        output = change(*arguments, code=1).output
        assert f"MISSING_PUBLICATION  {warehouse.folder_of(newest)}" in output
        assert "everything is as it should be" not in output
    runs = json.loads(change("status", "--json").output)["rows"]["runs"]
    assert runs == 102
    change("doctor", "--accept-loss", newest, code=2)
    change("doctor", "--reason", "none", code=2)
    lost = [record.publication_id for record in warehouse.publications()[1:]]
    accepted = [part for name in (*lost, newest) for part in ("--accept-loss", name)]
    output = change("doctor", "--quick", *accepted, "--reason", "the disk died").output
    assert f"{newest}: all that it brought; the loss is accepted" in output
    assert json.loads(change("status", "--json").output)["rows"]["runs"] < 102


def test_a_correction_that_was_killed_before_the_build_is_finished_by_the_next(
    change: Run, warehouse_copy: Path
) -> None:
    run = leader(warehouse_copy)
    command = ("correct", "retract", run, *CORRECTION)
    killed = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *command],
        env={
            "PATH": "/usr/bin:/bin",
            "KERNELINDEX_WAREHOUSE": str(warehouse_copy),
            VARIABLE: "links written",
        },
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -9
    assert leader(warehouse_copy) == run
    assert "is already published" in (output := change(*command).output)
    assert "was built anew" in output
    with duckdb.connect(str(warehouse_copy / "kernelindex.duckdb"), read_only=True) as connection:
        query = f"from ranked_runs where run_digest = '{run}'"
        assert connection.sql(query).fetchall() == []
    assert "was built anew" not in change(*command).output


def mounted(deployment: Deployment, mount: str, *arguments: str) -> str:
    """What a command says where a folder is mounted in another way, for it alone."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    # Mounts of a namespace of its own end with it.
    script = f'{mount} || exit 77; exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            sys.executable,
            "-m",
            "pipelines.cli",
            *arguments,
        ],
        env=deployment.environment,
        cwd=deployment.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("this user may not mount")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def of_the_sample(deployment: Deployment, sample_warehouse: Path) -> Deployment:
    shutil.copytree(sample_warehouse, deployment.settings.warehouse)
    return deployment


@pytest.mark.integration
@pytest.mark.parametrize(
    "arguments",
    [
        lambda run: ("correct", "retract", run, *CORRECTION),
        lambda _: ("compact",),
        lambda _: ("ingest", "--replay"),
        lambda _: ("doctor", "--accept-loss", "00000001", "--reason", "none"),
        lambda _: ("rerun", "worker"),
        lambda _: ("site",),
    ],
)
def test_a_read_only_warehouse_is_one_line(
    of_the_sample: Deployment, arguments: Callable[[str], tuple[str, ...]]
) -> None:
    root = of_the_sample.settings.warehouse
    mount = f"mount --bind '{root}' '{root}' && mount -o remount,ro,bind '{root}'"
    said = mounted(of_the_sample, mount, *arguments(leader(root)))
    assert said.startswith("error: ")
    assert "Read-only file system" in said


@pytest.mark.integration
@pytest.mark.parametrize("size", ["60k", "300k"])
def test_a_full_dagster_home_is_one_line(of_the_sample: Deployment, size: str) -> None:
    home = of_the_sample.settings.dagster_home
    home.mkdir()
    mount = f"mount -t tmpfs -o size={size} tmpfs '{home}'"
    said = mounted(of_the_sample, mount, "ingest", "--dataset", "sample")
    assert said.startswith(f"error: {home}: Dagster's history cannot be written")
