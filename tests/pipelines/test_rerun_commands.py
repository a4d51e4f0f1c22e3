"""`kernelindex rerun` on the sample: what is bundled, imported and refused, as text and as JSON."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from assets.reruns.lane import jobs
from assets.reruns.launchers.job_directory import RECORD
from assets.reruns.sample_results import ARCHIVES, unpack
from assets.tables.warehouse import Warehouse
from tests.pipelines.conftest import Run, runner_on
from tests.pipelines.test_commands import answer
from tests.reruns.index import a_run, rows, use_local

OPERATION = "rmsnorm_h128"
SOLUTION = "rmsnorm_h128_torch_rms_norm"
WHY = ("--reason", "a test")


@pytest.fixture
def came_back(tmp_path: Path) -> Path:
    """A folder as `rerun bundle` makes it, with the result of a real session on an H200."""
    folder = tmp_path / "check"
    unpack(ARCHIVES[0], folder)
    return folder


def publications(warehouse: Path) -> list[str]:
    return [record.publication_id for record in Warehouse(warehouse).publications()]


def one_line(result: Result) -> str:
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    return line


# What is asked for


def test_a_bundle_holds_the_worker_and_says_how_to_go_on(ask: Run, tmp_path: Path) -> None:
    out = tmp_path / "check"
    said = ask("rerun", "bundle", "--operation", OPERATION, "--top", "2", *WHY, "--out", str(out))
    assert {path.name for path in out.iterdir()} == {"bundle", "kernelindex_worker.pyz"}
    assert "6 runs in the bundle" in said.stdout
    assert "python3 kernelindex_worker.pyz run bundle --out result" in said.stdout
    assert f"kernelindex rerun import {out}" in said.stdout


def test_the_written_bundle_passes_the_workers_own_check(ask: Run, tmp_path: Path) -> None:
    out = tmp_path / "check"
    made = answer(ask("rerun", "bundle", "--operation", OPERATION, "--solution", SOLUTION, *WHY,
                      "--out", str(out), "--json"))  # fmt: skip
    checked = subprocess.run(
        ["python3", "kernelindex_worker.pyz", "check", "bundle"],
        cwd=out, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert checked.stdout.startswith(f"{made['bundle_id']}: {len(made['runs'])} items")
    assert made["bundle"] == str(out / "bundle")
    assert made["left_out"] == []
    document = json.loads((out / "bundle" / "bundle.json").read_bytes())
    assert document["reason"] == "a test"


REFUSED = [
    ((), "Missing option '--reason'", 2),
    (("--operation", OPERATION, "--top", "2", "--reason", " "), "--reason: ", 2),
    (WHY, "name what to measure in one way", 2),
    ((*WHY, "abcd", "--operation", OPERATION, "--top", "1"), "in one way", 2),
    ((*WHY, "--top", "1"), "need --operation", 2),
    ((*WHY, "--operation", OPERATION), "in one way", 2),
    ((*WHY, "abcd", "--operation", OPERATION), "--operation needs --solution or --top", 2),
    ((*WHY, "--operation", OPERATION, "--top", "1", "--workload", "x"), "needs --solution", 2),
    ((*WHY, "--operation", OPERATION, "--top", "0"), "--top: ", 2),
    ((*WHY, "--operation", OPERATION, "--top", "1", "--samples", "3"), "--samples: ", 2),
    ((*WHY, "--operation", OPERATION, "--top", "1", "--deadline-s", "0"), "--deadline-s: ", 2),
    ((*WHY, "no digest"), "is no run digest", 1),
    ((*WHY, "0123456789abcdef"), "no published run has this digest", 1),
    ((*WHY, "--group", "ffffffff"), "no comparison group has this key", 1),
    ((*WHY, "--operation", "no_such", "--top", "1"), "no such operation", 1),
    ((*WHY, "--operation", OPERATION, "--solution", "nobody"), "no solution named 'nobody'", 1),
]


@pytest.mark.parametrize(("arguments", "message", "code"), REFUSED)
def test_what_cannot_be_measured_is_refused_before_anything_is_written(
    ask: Run, tmp_path: Path, arguments: tuple[str, ...], message: str, code: int
) -> None:
    result = ask("rerun", "bundle", *arguments, "--out", str(tmp_path / "out"), code=code)
    assert result.stdout == ""
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_digest_is_answered_with_the_runs_that_begin_alike(
    ask: Run, sample_warehouse: Path, tmp_path: Path
) -> None:
    digest = a_run(Warehouse(sample_warehouse), SOLUTION)
    wrong = digest[7:18] + ("0" if digest[18] != "0" else "1")
    result = ask("rerun", "bundle", wrong, *WHY, "--out", str(tmp_path / "out"), code=1)
    assert "perhaps:" in result.stderr
    assert f"{digest[7:19]} ({SOLUTION}" in result.stderr.splitlines()[2]


def test_the_digest_of_an_implementation_is_answered_with_its_runs(
    ask: Run, sample_warehouse: Path, tmp_path: Path
) -> None:
    [(implementation,)] = rows(
        Warehouse(sample_warehouse),
        f"select implementation_digest from implementations where solution_name = '{SOLUTION}'",
    )
    result = ask(
        "rerun", "bundle", str(implementation), *WHY, "--out", str(tmp_path / "out"), code=1
    )
    candidates = result.stderr.splitlines()[2:]
    assert len(candidates) == 5
    assert all(SOLUTION in line for line in candidates)


def test_similar_solutions_and_the_workloads_that_there_are_get_named(
    ask: Run, tmp_path: Path
) -> None:
    asked = ("rerun", "bundle", "--operation", OPERATION, *WHY, "--out", str(tmp_path / "out"))
    result = ask(*asked, "--solution", "torch_rms_norm", code=1)
    assert f"  {SOLUTION}" in result.stderr.splitlines()
    result = ask(*asked, "--solution", SOLUTION, "--workload", "zzz", code=1)
    assert "batch_size=32" in result.stderr


def test_an_existing_folder_is_left_as_it_is(ask: Run, tmp_path: Path) -> None:
    out = tmp_path / "check"
    out.mkdir()
    (out / "notes").write_text("mine")
    command = ("rerun", "bundle", "--operation", OPERATION, "--top", "1", *WHY, "--out", str(out))
    assert "already there" in one_line(ask(*command, code=2))
    assert [path.name for path in tmp_path.rglob("*")] == ["check", "notes"]


# What comes back


def test_a_result_is_imported_with_a_verdict_for_each_run(
    change: Run, warehouse_copy: Path, came_back: Path
) -> None:
    before = len(publications(warehouse_copy))
    found = answer(change("rerun", "import", str(came_back), "--runner", "one", "--json"))
    assert found["publication"] == publications(warehouse_copy)[-1]
    assert len(publications(warehouse_copy)) == before + 1
    assert found["clean_calibration"] is True
    assert found["unscored"] == []
    assert len(found["runs"]) == 41
    verified = {run["run_digest"] for run in found["runs"] if not run["unverified_because"]}
    stored = "select run_digest from runs where evidence_level = 'verified'"
    assert verified == {str(run) for (run,) in rows(Warehouse(warehouse_copy), stored)}
    shown = answer(change("show", min(verified), "--json"))
    assert shown["digest"] == min(verified)


def test_the_same_result_again_is_said_and_not_doubled(
    change: Run, warehouse_copy: Path, came_back: Path
) -> None:
    first = answer(change("rerun", "import", str(came_back), "--runner", "one", "--json"))
    counted = rows(
        Warehouse(warehouse_copy), "select count(*), count(distinct run_digest) from runs"
    )
    listed = publications(warehouse_copy)
    again = answer(change("rerun", "import", str(came_back), "--runner", "another", "--json"))
    assert again == {**first, "publication": None}
    assert "Nothing new" in change("rerun", "import", str(came_back)).stdout
    assert publications(warehouse_copy) == listed
    assert counted == rows(
        Warehouse(warehouse_copy), "select count(*), count(distinct run_digest) from runs"
    )


def test_an_imported_result_is_read_on_a_narrow_terminal(change: Run, came_back: Path) -> None:
    shown = change("rerun", "import", str(came_back)).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "torch_rms_norm " in shown
    assert "not passed: triton_libdevice: 2 runs compile_error" in shown
    assert "34 of 41 runs verified" in shown
    assert "unverified because: NOT_PASSED" in shown


def test_a_result_whose_import_died_before_the_build_is_completed_by_the_next(
    change: Run, warehouse_copy: Path, came_back: Path
) -> None:
    database = Warehouse(warehouse_copy).database
    before = database.read_bytes()
    change("rerun", "import", str(came_back))
    database.write_bytes(before)
    change("rerun", "import", str(came_back))
    assert answer(change("status", "--json"))["database_is_current"] is True


def damage_samples(folder: Path) -> None:
    samples = folder / "result" / "samples.jsonl"
    samples.write_text(samples.read_text().replace('"device_ns": ', '"device_ns": 1', 1))


def cut_result(folder: Path) -> None:
    (folder / "result" / "result.json").write_text("{")


def edit_result(folder: Path, **changes: Any) -> None:
    path = folder / "result" / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def other_nonce(folder: Path) -> None:
    edit_result(folder, nonce="0" * 32)


def other_status(folder: Path) -> None:
    items = json.loads((folder / "result" / "result.json").read_text())["items"]
    next(item for item in items if item["status"] != "PASSED").update(status="PASSED")
    edit_result(folder, items=items)


def better_median(folder: Path) -> None:
    items = json.loads((folder / "result" / "result.json").read_text())["items"]
    next(item for item in items if item["status"] == "PASSED")["statistics"]["median"] //= 2
    edit_result(folder, items=items)


def extra_file(folder: Path) -> None:
    (folder / "result" / "extra.txt").write_text("x")


def missing_log(folder: Path) -> None:
    next((folder / "result" / "logs").iterdir()).unlink()


def edited_bundle(folder: Path) -> None:
    path = folder / "bundle" / "bundle.json"
    path.write_text(path.read_text().replace("kernelindex", "kernelindeks", 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_samples, "samples.jsonl"),
        (cut_result, "result.json is no"),
        (other_nonce, "nonce"),
        (other_status, "status is PASSED; "),
        (better_median, "samples.jsonl gives"),
        (extra_file, "extra.txt is not listed"),
        (missing_log, "is not there"),
        (edited_bundle, "bundle.json"),
    ],
)
def test_a_damaged_or_foreign_result_is_refused_in_one_line(
    change: Run, warehouse_copy: Path, came_back: Path, damage: Any, message: str
) -> None:
    damage(came_back)
    listed = publications(warehouse_copy)
    line = one_line(change("rerun", "import", str(came_back), "--json", code=1))
    assert line.startswith("refused: ")
    assert message in line
    assert publications(warehouse_copy) == listed


def test_a_result_of_another_bundle_is_refused(
    change: Run, came_back: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    change("rerun", "bundle", "--operation", OPERATION, "--top", "1", *WHY, "--out", str(other))
    result = str(came_back / "result")
    line = one_line(change("rerun", "import", str(other), "--result", result, code=1))
    assert "bundle_id" in line


def test_what_is_not_there_is_no_refusal_of_a_result(ask: Run, came_back: Path) -> None:
    assert "no job bundle" in one_line(ask("rerun", "import", str(came_back / "logs"), code=2))
    shutil.rmtree(came_back / "result")
    assert "run the worker first" in one_line(ask("rerun", "import", str(came_back), code=2))


def test_runs_of_a_dataset_that_is_not_here_are_refused(
    change: Run, warehouse_copy: Path, came_back: Path, tmp_path: Path
) -> None:
    from tests.warehouses import ingest_into

    ingest_into(warehouse_copy.parent / "part", "baseline")
    with pytest.MonkeyPatch.context() as patch:
        run = runner_on(warehouse_copy.parent / "part", patch)
        line = one_line(run("rerun", "import", str(came_back), code=1))
    assert "ingest its dataset first" in line


# What runs and ran


def test_without_jobs_there_is_nothing_to_list_or_repair(ask: Run) -> None:
    assert answer(ask("rerun", "status", "--json")) == []
    assert "No job" in ask("rerun", "status").stdout
    assert answer(ask("rerun", "reconcile", "--json")) == {"findings": [], "results": {}}
    assert "Nothing was left behind." in ask("rerun", "reconcile").stdout


def test_the_worker_is_built_where_it_is_said_to_be(change: Run) -> None:
    path = answer(change("rerun", "worker", "--json"))["worker"]
    assert change("rerun", "worker").stdout.strip() == path
    asked = subprocess.run(["python3", path, "--version"], capture_output=True, check=True)
    assert asked.stdout.strip()


def test_a_launcher_that_is_not_configured_is_said_before_anything_starts(
    change: Run, warehouse_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
    asked = ("rerun", "run", "--operation", OPERATION, "--top", "1", *WHY)
    assert "'slurm' is not configured" in one_line(change(*asked, "--launcher", "slurm", code=2))
    assert "--launcher: " in one_line(change(*asked, "--launcher", "cloud", code=2))
    assert "--gpu: " in one_line(change(*asked, "--gpu", "first", code=2))
    assert not (warehouse_copy / "reruns" / "bundles").exists()
    assert not (warehouse_copy / "reruns" / "jobs").exists()


def test_a_machine_without_torch_is_said_and_publishes_nothing(
    change: Run, warehouse_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["python3", "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
    use_local(Warehouse(warehouse_copy), str(bare / "bin" / "python"))
    listed = publications(warehouse_copy)
    run = a_run(Warehouse(warehouse_copy), SOLUTION)
    result = change("rerun", "run", run, *WHY, "--gpu", "cpu", "--json", code=1)
    found = answer(result)
    assert (found["publication"], found["runs"]) == (None, [])
    assert found["fault"] == "ModuleNotFoundError: No module named 'torch'"
    assert "No module named 'torch'" in result.stderr.splitlines()[-1]
    assert publications(warehouse_copy) == listed
    [line] = answer(change("rerun", "status", "--json"))
    assert line["state"] == "finished"
    assert line["job_id"] in change("rerun", "status").stdout


def test_a_damaged_job_is_named_and_hides_no_other(change: Run, warehouse_copy: Path) -> None:
    job = warehouse_copy / "reruns" / "jobs" / "rerun-0"
    job.mkdir(parents=True)
    (job / RECORD).write_text("{")
    [line] = answer(change("rerun", "status", "--json"))
    assert (line["job_id"], line["state"]) == ("rerun-0", "damaged")
    found = answer(change("rerun", "reconcile", "--json"))
    assert [finding["subject"] for finding in found["findings"]] == ["rerun-0"]
    assert "cannot be read" in change("rerun", "reconcile").stdout


# With a real worker


def test_a_bundle_is_carried_to_another_machine_and_its_result_back(
    change: Run, warehouse_copy: Path, torch_python: str, tmp_path: Path
) -> None:
    own = Warehouse(warehouse_copy)
    run = a_run(own, SOLUTION)
    out = tmp_path / "check"
    change("rerun", "bundle", run, *WHY, "--samples", "20", "--out", str(out))
    there = tmp_path / "machine without the project"
    shutil.move(out, there)
    subprocess.run(
        [torch_python, "kernelindex_worker.pyz", "run", "bundle", "--out", "result", "--gpu", "cpu",
         "--lock-dir", str(tmp_path / "locks")],
        cwd=there, env={"PATH": "/usr/bin:/bin"}, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    shutil.move(there, out)
    listed = publications(warehouse_copy)
    found = answer(change("rerun", "import", str(out), "--runner", "bench", "--json"))
    [imported] = found["runs"]
    assert (imported["status"], imported["verdict"]) == ("passed", "other_hardware")
    assert (imported["run_digest"], imported["evidence_level"]) == (None, None)
    assert found["trial"] == ["NOT_ON_A_GPU", "PROTOCOL_NOT_APPROVED"]
    said = change("rerun", "import", str(out)).stdout
    assert "torch_rms_norm" in said
    assert "This was a trial. It is published, ranked and offered nowhere" in said
    assert (found["publication"], publications(warehouse_copy)) == (None, listed)


def test_one_command_bundles_measures_and_imports(
    change: Run, warehouse_copy: Path, torch_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
    own = Warehouse(warehouse_copy)
    use_local(own, torch_python)
    run = a_run(own, SOLUTION)
    asked = ("rerun", "run", run, *WHY, "--samples", "20", "--gpu", "cpu", "--json")
    listed = publications(warehouse_copy)
    [measured] = answer(change(*asked))["runs"]
    assert measured["status"] == "passed"
    [line] = jobs(own)
    assert (line.imported, line.trial) == (True, True)
    assert "a trial" in change("rerun", "status").stdout
    assert publications(warehouse_copy) == listed
    (own.root / "reruns" / "jobs" / line.job_id / "imported.json").unlink()
    repaired = answer(change("rerun", "reconcile", "--json"))
    assert repaired["results"] == {line.job_id: "a trial of 1 run, published nowhere"}
    assert answer(change("rerun", "reconcile", "--json"))["results"] == {}
