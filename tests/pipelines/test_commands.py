"""Commands on the sample: what they answer as JSON, how they refuse, and with which exit code."""

import json
import os
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from assets.answers.lookup import digest_heads
from assets.tables.warehouse import Warehouse
from pipelines.cli import app
from tests.pipelines.conftest import Run, runner_on

OPERATION = "rmsnorm_h128"
SOLUTION = "rmsnorm_h128_torch_rms_norm"


def answer(result: Result):
    """What is on stdout, which is one JSON value and nothing else."""
    return json.loads(result.stdout)


@pytest.fixture
def digests(sample_warehouse: Path) -> dict[str, str]:
    database = str(Warehouse(sample_warehouse).database)
    with duckdb.connect(database, read_only=True) as connection:
        [(first, second)] = (
            connection.sql(
                """
            select list(run_digest order by display_order)[1:2] from ranked_runs
            where group_size > 2 group by comparison_key order by comparison_key limit 1
            """
            )
            .project("#1[1], #1[2]")
            .fetchall()
        )
        [(failed,)] = connection.sql(
            "select min(run_digest) from runs where status <> 'passed'"
        ).fetchall()
    return {"first": first, "second": second, "failed": failed}


COMMANDS = [
    ("status",),
    ("revisions",),
    ("top", OPERATION),
    ("show", OPERATION),
    ("compare", "aaaa", "bbbb"),
    ("resolve", "-o", OPERATION),
    ("source", "aaaa"),
    ("query", "select 1"),
    ("quarantine",),
    ("quarantine", "--reason", "BAD_LATENCY"),
    ("export", "-o", "never.jsonl"),
    ("doctor",),
    ("compact",),
    ("correct", "retract", "aaaa", "--author", "a", "--reason", "b", "--evidence", "https://c.d"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_before_anything_was_ingested_every_command_says_so_in_one_line(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = runner_on(tmp_path / "nothing", monkeypatch)(*command, code=2)
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert "run `kernelindex ingest` first" in line
    assert not (tmp_path / "nothing").exists()


def test_status_counts_what_is_there(ask: Run) -> None:
    report = answer(ask("status", "--json"))
    assert report["rows"]["runs"] == 102
    assert report["publications"] == 3
    assert report["database_is_current"] is True
    assert report["devices"] == ["NVIDIA H200"]


def test_revisions_say_what_each_publication_brought(ask: Run) -> None:
    listed = answer(ask("revisions", "--json"))
    assert [item["kind"] for item in listed] == ["ingest"] * 3
    assert sum(item["rows"]["runs"] for item in listed) == 102


def test_top_ranks_every_group_and_counts_failures(ask: Run) -> None:
    found = answer(ask("top", OPERATION, "--json"))
    assert found["operation"] == OPERATION
    assert len(found["groups"]) == 5
    for group in found["groups"]:
        ranks = [entry["rank"] for entry in group["ranking"]]
        assert ranks == sorted(ranks)
        assert ranks[0] == 1
        assert group["ranking"][0]["slowdown"] == 1
        assert group["tried"] == 5
        assert [item["status"] for item in group["not_ranked"]] == ["compile_error"]


@pytest.mark.parametrize(
    "name", ["rmsnorm-h128", "3b8392f2900e", "sha256:3b8392f2", "rmsnorm_h128"]
)
def test_an_operation_has_many_names(ask: Run, name: str) -> None:
    assert answer(ask("top", name, "--json"))["operation"] == OPERATION


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        (("--gpu", "h200"), 5),
        (("--gpu", "NVIDIA H200"), 5),
        (("--workload", "batch_size=32"), 1),
        (("--workload", "905cef8c8a85"), 1),
        (("--workload", "7031b22a"), 1),
        (("--workload", "batch_size=32", "--gpu", "H200"), 1),
    ],
)
def test_top_is_narrowed(ask: Run, options: tuple[str, ...], groups: int) -> None:
    assert len(answer(ask("top", OPERATION, "--json", *options))["groups"]) == groups


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("top", "rmsnorm_h12"), "rmsnorm_h128"),
        (("top", OPERATION, "--gpu", "B200"), "NVIDIA H200"),
        (("top", OPERATION, "--gpu", "H2"), "NVIDIA H200"),
        (("top", OPERATION, "--workload", "batch_size=3"), "batch_size=32"),
        (("show", "no-such-thing"), "no run, implementation"),
        (("show", "ffffffffffff"), "no run, implementation"),
        (("compare", OPERATION, "d73a7322"), "no run or implementation"),
        (("source", OPERATION), "no implementation or run"),
        (("resolve", "-o", "rmsnorm"), "rmsnorm_h128"),
        (("resolve", "-o", OPERATION, "--dtype", "fp8_e4m3"), "no ranked result with fp8_e4m3"),
        (("resolve", "-o", OPERATION, "--axes", "hidden_size=64"), "always 128"),
        (("quarantine", "--explain", "BAD_LATENCI"), "BAD_LATENCY"),
    ],
)
def test_a_no_is_exit_code_1_and_says_what_was_meant(
    ask: Run, arguments: tuple[str, ...], said: str
) -> None:
    result = ask(*arguments, code=1)
    assert result.stdout == ""
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("query", "selec 1"), "syntax error"),
        (("query", "  "), "empty"),
        (("query", "select 1; select 2"), "one statement"),
        (("query", "select * from read_csv('/etc/passwd')"), "disabled by configuration"),
        (("query", "select 1", "--format", "parquet"), "--output"),
        (("query", "select 1", "--json", "--format", "csv"), "contradict"),
        (("query", "select 1", "-o", "no/such/folder/x.csv"), "cannot be written"),
        (("show", OPERATION, "--manifest", "--cite"), "contradict"),
        (("resolve", "-o", OPERATION, "--axes", "rows=1"), "no axis rows; it has batch_size"),
        (("resolve", "-o", OPERATION, "--axes", "batch_size"), "name=integer"),
        (("quarantine", "--explain", "A", "--reason", "B"), "contradict"),
        (("verify-catalog", "no-such-file"), "no such file"),
        (("status", "--as-of", "1"), "No such option"),
        (("top", OPERATION, "--as-of", "77"), "no such publication"),
        (("correct", "--file", "no-such-file"), "cannot be read"),
        (("correct", "retract", "aa304264d229"), "Missing option"),
    ],
)
def test_wrong_usage_is_exit_code_2(ask: Run, arguments: tuple[str, ...], said: str) -> None:
    result = ask(*arguments, code=2)
    assert result.stdout == ""
    assert said in result.stderr


def test_an_ambiguous_name_lists_candidates(
    change: Run, warehouse_copy: Path, digests: dict[str, str]
) -> None:
    beginning = digests["first"][:20]
    head, _ = digest_heads(beginning.removeprefix("sha256:"))
    with duckdb.connect(str(Warehouse(warehouse_copy).database)) as connection:
        connection.execute(
            "insert into run_facts "
            "select * replace (? || run_digest[21:] as run_digest, ? as digest_head) "
            "from run_facts where run_digest <> ? limit 12",
            [beginning, head, digests["first"]],
        )
    result = change("show", beginning[7:], code=1)
    assert result.stdout == ""
    said = result.stderr.splitlines()
    assert "names 13 things" in said[0]
    assert len(said) == 2 + 10
    assert change("show", digests["first"]).exit_code == 0


def test_the_dossier_of_a_run_is_its_row(ask: Run, digests: dict[str, str]) -> None:
    found = answer(ask("show", digests["first"], "--json"))
    assert found["kind"] == "run"
    assert found["rank"] == 1
    assert found["measurements"][0]["value"] == found["primary_value"]
    by_external_id = answer(ask("show", found["external_id"], "--json"))
    assert by_external_id["digest"] == digests["first"]
    text = ask("show", digests["first"]).stdout
    for section in ("Identity", "Correctness", "Workload", "Protocol", "Environment", "Caveats"):
        assert f"\n{section}\n" in text
    assert "not measured: " in ask("show", digests["failed"]).stdout


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (SOLUTION, "implementation"),
        ("905cef8c8a85", "workload"),
        (OPERATION, "operation"),
        ("cdf3ee856c72", "environment"),
        ("7d44d206ad08", "protocol"),
        ("flashinfer-baseline", "project"),
    ],
)
def test_everything_has_a_dossier_a_manifest_and_a_citation(ask: Run, name: str, kind: str) -> None:
    from assets.manifests.canonical import identity_digest

    found = answer(ask("show", name, "--json"))
    assert found["kind"] == kind
    manifest = answer(ask("show", name, "--manifest"))
    assert identity_digest(manifest["kind"], manifest["spec"]) == found["digest"]
    assert found["digest"] in answer(ask("show", name, "--cite", "--json"))["text"]
    assert ask("show", name).stdout.startswith(f"{kind} ")


def test_a_runs_manifest_is_shown_with_its_protocol_and_environment(
    ask: Run, digests: dict[str, str]
) -> None:
    manifest = answer(ask("show", digests["first"], "--manifest"))
    assert list(manifest) == ["run", "protocol", "environment"]


def test_runs_of_one_group_are_compared(ask: Run, digests: dict[str, str]) -> None:
    found = answer(ask("compare", digests["first"], digests["second"], "--json"))
    assert found["comparable"] is True
    assert found["groups"][0]["faster"] == "a"
    assert found["ratio"] == pytest.approx(
        found["groups"][0]["b"]["value_ns"] / found["groups"][0]["a"]["value_ns"]
    )
    back = answer(ask("compare", digests["second"], digests["first"], "--json"))
    assert back["ratio"] == pytest.approx(1 / found["ratio"])


def test_what_differs_is_not_compared_and_every_difference_is_named(
    ask: Run, digests: dict[str, str]
) -> None:
    found = answer(ask("compare", digests["first"], digests["failed"], "--json", code=1))
    assert found["comparable"] is False
    assert found["ratio"] is None
    assert found["mismatches"][0]["what"] == "eligible"
    assert "metric" in {mismatch["what"] for mismatch in found["mismatches"]}
    operations = answer(ask("compare", SOLUTION, "gemm_n128_k2048_torch_matmul", "--json", code=1))
    assert [mismatch["what"] for mismatch in operations["mismatches"]] == ["operation"]


def test_resolve_is_exact_or_says_in_what_it_is_not(ask: Run) -> None:
    asked = ("resolve", "-o", OPERATION, "--dtype", "bfloat16", "--gpu", "H200", "--json")
    exact = answer(ask(*asked, "--axes", "batch_size=32,hidden_size=128"))
    assert [result["workload"] for result in exact["exact"]] == ["batch_size=32"]
    assert exact["near"] == []
    near = answer(ask(*asked, "--axes", "batch_size=33"))
    assert near["exact"] == []
    assert near["near"][0]["differences"] == [
        {"what": "axis batch_size", "asked": "33", "found": "32"}
    ]
    assert all(result["differences"] for result in near["near"])


def test_source_is_alone_on_stdout_and_its_licence_on_stderr(ask: Run) -> None:
    result = ask("source", SOLUTION)
    compile(result.stdout, "main.py", "exec")
    assert "licence: Apache-2.0" in result.stderr
    found = answer(ask("source", SOLUTION, "--json"))
    assert found["content"] == result.stdout


def test_a_source_without_a_licence_says_so(change: Run, warehouse_copy: Path) -> None:
    with duckdb.connect(str(Warehouse(warehouse_copy).database)) as connection:
        connection.execute("update implementations set license_concluded = null")
    assert "none was concluded" in change("source", SOLUTION).stderr


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_query_is_written_to_a_file_whole(ask: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"runs.{ending}"
    ask("query", "select run_digest, observed_at, primary_value from runs", "-o", str(path))
    if ending == "parquet":
        assert pq.read_table(path).num_rows == 102
    elif ending == "json":
        assert len(json.loads(path.read_text())) == 102
    else:
        assert len(path.read_text().splitlines()) == 103
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_a_query_comes_from_standard_input(ask: Run) -> None:
    assert answer(ask("query", "-", "--json", input="select 42 as n")) == [{"n": 42}]


def test_quarantine_lists_what_stands(
    ask: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer(ask("quarantine", "--json")) == []
    from assets.traces.pull import SAMPLE_DIRECTORY
    from tests.warehouses import ingest_into

    dataset = tmp_path / "odd"
    shutil.copytree(SAMPLE_DIRECTORY, dataset)
    for path in dataset.glob("solutions/baseline/rmsnorm/rmsnorm_h128/*.json"):
        path.unlink()
    ingest_into(tmp_path / "warehouse", dataset=str(dataset))
    change = runner_on(tmp_path / "warehouse", monkeypatch)
    [row] = answer(change("quarantine", "--json"))
    assert (row["reason"], row["items"]) == ("UNKNOWN_SOLUTION", 5)
    items = answer(change("quarantine", "--reason", "unknown_solution", "--json"))
    assert len(items) == 5
    assert {item["path"] for item in items} == {"traces/baseline/rmsnorm/rmsnorm_h128.jsonl"}
    assert "UNKNOWN_SOLUTION" in change("quarantine").stdout


def test_corrections_change_ranks_and_the_past_stays(
    change: Run, digests: dict[str, str], tmp_path: Path
) -> None:
    first, second = digests["first"], digests["second"]
    who = ("--author", "A. Reader", "--reason", "throttled", "--evidence", "https://example.org")
    done = answer(change("correct", "supersede", first[7:19], "--by", second, *who, "--json"))
    assert done["published"] == 1
    assert done["ranked_runs_after"] == done["ranked_runs_before"] - 1
    shown = answer(change("show", first, "--json"))
    assert (shown["rank"], shown["excluded_because"]) == (None, ["SUPERSEDED"])
    assert answer(change("show", second, "--json"))["rank"] == 1
    assert answer(change("show", first, "--as-of", "3", "--json"))["rank"] == 1

    file = tmp_path / "corrections.jsonl"
    line = {
        "action": "supersede",
        "target": first,
        "replacement": second,
        "author": "A. Reader",
        "reason": "throttled",
        "evidence_url": "https://example.org",
    }
    file.write_text(json.dumps(line) + "\n")
    again = answer(change("correct", "--json", "--file", str(file)))
    assert (again["publication"], again["known"]) == (None, 1)
    file.write_text(json.dumps({**line, "target": "sha256:" + "0" * 64}) + "\n")
    assert "no published run" in change("correct", "--file", str(file), code=2).stderr
    assert "no run or impl" in change("correct", "attest", "ffffff", *who, code=1).stderr
    wrong = change("correct", "attest", first, *who[:-1], "a note", code=2)
    assert "evidence_url" in wrong.stderr


def test_doctor_finds_damage_and_repairs_it(change: Run, warehouse_copy: Path) -> None:
    warehouse = Warehouse(warehouse_copy)
    runs = Path(warehouse.files("runs")[-1])
    os.truncate(runs, 100)
    warehouse.database.write_bytes(b"damaged")
    found = answer(change("doctor", "--quick", "--json", code=1))
    assert found["ok"] is False
    assert [item["where"] for item in found["findings"]] == [str(runs)]
    assert "cannot be opened" in change("status", code=2).stderr
    repaired = answer(change("doctor", "--repair", "--json"))
    assert repaired["ok"] is True
    assert len(repaired["repaired"]) == 2
    assert repaired["not_repaired"] == []
    assert answer(change("status", "--json"))["rows"]["runs"] == 102


def test_compact_and_its_retention(change: Run, warehouse_copy: Path) -> None:
    done = answer(change("compact", "--json"))
    assert (done["generation"], done["publications"]) == (1, 3)
    assert len(done["kept"]) == 3
    done = answer(change("compact", "--keep-days", "0", "--json"))
    assert done["generation"] is None
    assert len(done["removed"]) == 3
    assert answer(change("show", SOLUTION, "--manifest"))["kind"] == "ImplementationRevision"
    assert len(answer(change("revisions", "--json"))) == 3


def test_a_moved_warehouse_answers_from_any_directory(
    change: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answer(change("top", OPERATION, "--json"))["groups"]
    assert answer(change("show", SOLUTION, "--manifest"))["kind"] == "ImplementationRevision"


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] in ("top", "status", "revisions")])
def test_nothing_is_wider_than_the_terminal(ask: Run, command: tuple[str, ...]) -> None:
    lines = ask(*command).stdout.splitlines()
    too_wide = [line for line in lines if len(line) > 80 and "/" not in line]
    assert too_wide == []


def test_the_shell_completes_operations_and_reasons(
    ask: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complete(line: str) -> str:
        monkeypatch.setenv("_KERNELINDEX_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        return CliRunner().invoke(app, [], prog_name="kernelindex").stdout

    assert "rmsnorm_h128" in complete("kernelindex top rms")
    assert "BAD_LATENCY" in complete("kernelindex quarantine --explain BAD_L")
    assert "verify-catalog" in complete("kernelindex ver")
