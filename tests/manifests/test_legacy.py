"""Every schema version of the corpus is read; what cannot be mapped has a reason with the field."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from assets.traces.layout import root_of
from tests.builders import Ingested, ingest

NEWEST_KEYS = {"init", "check", "inputs.*.param", "outputs.*.param"}


def reasons(ours: Ingested) -> dict[tuple[str, str], int]:
    """How many items of each kind were refused for each reason."""
    errors = [row for row in ours["quarantine"] if row["severity"] == "error"]
    return dict(Counter((row["kind"], row["reason"]) for row in errors))


def published(ours: Ingested) -> dict[str, int]:
    return {table: len(ours[table]) for table in ("operations", "implementations", "runs")}


@pytest.fixture(scope="module")
def legacy(corpus: Path) -> Ingested:
    return ingest(corpus / "legacy-schema")


def test_documents_of_2025_are_read(legacy: Ingested) -> None:
    legacy.check_sums()
    assert legacy.normalized.counts.read == {
        "definition": 40,
        "solution": 33,
        "trace": 567,
        "workload": 3591,
    }
    assert published(legacy) == {"operations": 37, "implementations": 22, "runs": 258}
    assert legacy.normalized.counts.workload_rows["workload"] == 1952


def test_what_of_2025_cannot_be_published_names_the_field(legacy: Ingested) -> None:
    assert reasons(legacy) == {
        # A sketch without dtypes, and what needs it.
        ("definition", "MISSING_FIELD"): 1,
        ("solution", "DEFINITION_IN_QUARANTINE"): 2,
        ("trace", "DEFINITION_IN_QUARANTINE"): 2,
        # Two files that two folders hold in different states.
        ("definition", "DUPLICATE_DEFINITION"): 2,
        # Names that changed elsewhere but not here, and what only the other of two roots has.
        ("solution", "UNKNOWN_DEFINITION"): 9,
        ("trace", "UNKNOWN_SOLUTION"): 307,
        ("workload", "UNKNOWN_DEFINITION"): 51,
        # Definitions that got axes which older workloads do not bind.
        ("workload", "BAD_AXIS_VALUE"): 512,
        # Bare rows that do not say what they are workloads of.
        ("workload", "MISSING_FIELD"): 1076,
    }
    fields = {
        "inputs.input.dtype, inputs.weight.dtype, outputs.output.dtype are missing",
        "definition, workload are missing",
        "workload.axes.len_kv_indptr: axis 'len_kv_indptr', which the shape of 'kv_indptr' needs, "
        "is not bound",
    }
    shape_reasons = ("MISSING_FIELD", "BAD_AXIS_VALUE")
    messages = {row["message"] for row in legacy["quarantine"] if row["reason"] in shape_reasons}
    assert messages == fields


def test_fields_of_2025_that_are_not_read_are_named(legacy: Ingested) -> None:
    warnings = [row["message"] for row in legacy["quarantine"] if row["severity"] == "warning"]
    assert set(warnings) == {
        "not read: spec.build_steps",
        "not read: spec.build_commands",
        "not read: axes.*.parent",
        "not read: evaluation.log_file",
    }


def test_old_names_of_fields_are_mapped(legacy: Ingested) -> None:
    assert {row["gpu_product"] for row in legacy["environments"]} == {"NVIDIA B200"}
    assert {row["language"] for row in legacy["implementations"]} <= {"python", "triton", "cuda"}
    assert all(row["family"] != "uncategorized" for row in legacy["operations"])
    assert {row["status"] for row in legacy["runs"]} == {"passed"}
    arrays = [row["path"] for row in legacy["operations"] + legacy["implementations"]]
    assert any(path.endswith("/definitions.json") for path in arrays)


def test_agent_runs_without_their_definitions_are_refused(corpus: Path) -> None:
    ours = ingest(corpus / "generation-runs")
    ours.check_sums()
    assert published(ours) == {"operations": 0, "implementations": 0, "runs": 0}
    assert reasons(ours) == {
        ("solution", "UNKNOWN_DEFINITION"): 39,
        ("trace", "UNKNOWN_DEFINITION"): 39,
    }


def test_agent_runs_beside_definitions_are_published_each_on_its_own_solution(
    corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(corpus / "generation-runs", tmp_path / "data" / "runs")
    runs = list((tmp_path / "data" / "runs").iterdir())
    for run in runs:
        shutil.copytree(corpus / "flashinfer-trace/definitions", run / "definitions")
    ours = ingest(tmp_path / "data", work=tmp_path)
    ours.check_sums()
    assert ours.problems == []
    assert published(ours) == {
        "operations": 354 * len(runs),
        "implementations": 39,
        "runs": 39,
    }
    assert Counter(row["status"] for row in ours["runs"]) == {
        "incorrect_numerical": 18,
        "compile_error": 10,
        "passed": 8,
        "runtime_error": 3,
    }
    # The runs use solution names again, with other source: the folder tells them apart.
    names = [(row["author"], row["solution_name"]) for row in ours["implementations"]]
    assert len(set(names)) < len(names)
    for row in ours["runs"]:
        folder = root_of(row["path"])
        assert any(
            item["implementation_digest"] == row["implementation_digest"]
            and item["solution_name"] == row["solution_name"]
            and root_of(item["path"]) == folder
            for item in ours["implementations"]
        )


def test_a_solution_name_that_is_used_again_is_found_by_what_the_trace_says(
    corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(corpus / "name-collisions", tmp_path / "data", dirs_exist_ok=True)
    shutil.copytree(corpus / "flashinfer-trace", tmp_path / "data", dirs_exist_ok=True)
    ours = ingest(tmp_path / "data", work=tmp_path)
    ours.check_sums()
    [collision] = (corpus / "name-collisions").rglob("*.json")
    name = json.loads(collision.read_text())["name"]
    digests = {
        row["implementation_digest"]
        for row in ours["implementations"]
        if row["solution_name"] == name
    }
    assert len(digests) == 2
    # One author, one definition, one name, two sources: nobody can tell which was measured.
    assert not digests & {row["implementation_digest"] for row in ours["runs"]}
    refused = [row for row in ours["quarantine"] if row["reason"] == "DUPLICATE_SOLUTION"]
    assert all(name in row["message"] for row in refused)
    assert (len(ours["runs"]), len(refused)) == (376, 5)


def test_a_solution_alone_is_refused_for_its_definition(corpus: Path) -> None:
    ours = ingest(corpus / "name-collisions")
    ours.check_sums()
    assert reasons(ours) == {("solution", "UNKNOWN_DEFINITION"): 1}


def test_definitions_that_the_library_emits_are_read(corpus: Path) -> None:
    ours = ingest(corpus / "fi-trace-definitions")
    ours.check_sums()
    assert published(ours) == {"operations": 116, "implementations": 0, "runs": 0}
    assert reasons(ours) == {("definition", "BAD_AXIS"): 5}
    assert {row["message"] for row in ours["quarantine"] if row["reason"] == "BAD_AXIS"} == {
        "axes.kv_pad_dim: a constant needs a value",
        "axes.page_size: a constant needs a value",
        "axes.beam_width: a constant needs a value",
    }
    warnings = [row["message"] for row in ours["quarantine"] if row["severity"] == "warning"]
    unread = {name for text in warnings for name in text.removeprefix("not read: ").split(", ")}
    assert unread <= NEWEST_KEYS
    # What the library cannot say is kept as it says it.
    assert {"unknown", "string"} & {
        name for row in ours["operations"] for name in row["input_dtypes"]
    }
