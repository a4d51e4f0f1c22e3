"""The bundled sample dataset holds together and holds what its README promises."""

import importlib.util
import json
import shutil
import struct
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from assets.traces.pull import pull
from assets.traces.raw_store import RawStore

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "assets" / "traces" / "sample"
SKIPPED = "Solution skipped after"


def documents(pattern):
    return [json.loads(path.read_text()) for path in sorted(SAMPLE.glob(pattern))]


def rows(pattern):
    return [
        (path, json.loads(line))
        for path in sorted(SAMPLE.glob(pattern))
        for line in path.read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def definitions():
    return {document["name"]: document for document in documents("definitions/*/*.json")}


@pytest.fixture(scope="module")
def solutions():
    return {document["name"]: document for document in documents("solutions/*/*/*/*.json")}


@pytest.fixture(scope="module")
def workloads():
    return {row["workload"]["uuid"]: row for _, row in rows("workloads/*/*.jsonl")}


@pytest.fixture(scope="module")
def traces():
    return rows("traces/*/*/*.jsonl")


def test_it_is_as_large_as_promised(definitions, solutions, traces):
    assert len(definitions) >= 5
    assert len(solutions) >= 12
    assert len({document["author"] for document in solutions.values()}) >= 3
    assert len(traces) >= 60
    files = [path for path in SAMPLE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_500_000


def test_every_status_was_really_measured_at_least_once(traces):
    evaluations = [trace["evaluation"] for _, trace in traces]
    measured = Counter(e["status"] for e in evaluations if not e["log"].startswith(SKIPPED))
    assert set(measured) == {"PASSED", "INCORRECT_NUMERICAL", "COMPILE_ERROR", "RUNTIME_ERROR"}


def test_solution_files_lie_where_their_content_says(definitions):
    for path in SAMPLE.glob("solutions/*/*/*/*.json"):
        solution = json.loads(path.read_text())
        operation = definitions[solution["definition"]]
        expected = (solution["author"], operation["op_type"], operation["name"], solution["name"])
        assert (*path.parts[-4:-1], path.stem) == expected


def test_solutions_state_their_call_convention_and_compile_as_python(solutions, definitions):
    for solution in solutions.values():
        spec = solution["spec"]
        entry_file, function = spec["entry_point"].split("::")
        sources = {source["path"]: source["content"] for source in solution["sources"]}
        module = compile(sources[entry_file], entry_file, "exec")
        code = next(c for c in module.co_consts if getattr(c, "co_name", None) == function)
        definition = definitions[solution["definition"]]
        expected = list(definition["inputs"])
        if spec["destination_passing_style"]:
            expected += list(definition["outputs"])
        assert list(code.co_varnames[: code.co_argcount]) == expected
    styles = {solution["spec"]["destination_passing_style"] for solution in solutions.values()}
    assert styles == {True, False}


def test_a_trace_names_a_solution_and_a_workload_that_exist(traces, solutions, workloads):
    for path, trace in traces:
        solution = solutions[trace["solution"]]
        assert solution["definition"] == trace["definition"] == path.stem
        assert solution["author"] == path.parts[-3]
        workload = workloads[trace["workload"]["uuid"]]
        assert workload["definition"] == trace["definition"]
        assert workload["workload"] == trace["workload"]


def test_authors_compete_on_every_workload(traces, solutions, workloads):
    authors = {identity: set() for identity in workloads}
    for _, trace in traces:
        if trace["evaluation"]["status"] == "PASSED":
            author = solutions[trace["solution"]]["author"]
            authors[trace["workload"]["uuid"]].add(author)
    assert all(len(passing) >= 3 and "baseline" in passing for passing in authors.values())


def test_index_tensors_are_there_and_agree_with_the_axes(workloads, definitions):
    for row in workloads.values():
        axes = row["workload"]["axes"]
        for name, described in row["workload"]["inputs"].items():
            if described["type"] != "safetensors":
                continue
            (axis,) = definitions[row["definition"]]["inputs"][name]["shape"]
            values = int32_tensor(SAMPLE / described["path"], described["tensor_key"])
            assert len(values) == axes[axis]
            if name == "kv_indices":
                assert len(set(values)) == len(values)
                assert 0 <= min(values) <= max(values) < axes["num_pages"]
            else:
                total = axes.get("num_kv_indices", axes.get("total_kv"))
                assert values[0] == 0
                assert values[-1] == total
                assert values == sorted(set(values))


def int32_tensor(path, key):
    content = path.read_bytes()
    assert len(content) < 20_000
    (header_size,) = struct.unpack_from("<Q", content)
    entry = json.loads(content[8 : 8 + header_size])[key]
    assert entry["dtype"] == "I32"
    begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
    return list(struct.unpack(f"<{(end - begin) // 4}i", content[begin:end]))


def test_the_script_writes_the_same_workloads_again(tmp_path, monkeypatch):
    script = make_sample()
    (tmp_path / "definitions").symlink_to(SAMPLE / "definitions")
    monkeypatch.setattr(script, "SAMPLE", tmp_path)
    script.write_workloads()
    for folder in ("workloads", "blob"):
        assert contents(tmp_path / folder) == contents(SAMPLE / folder)


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def make_sample() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_sample", REPOSITORY / "bench" / "make_sample.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_sample"] = module
    spec.loader.exec_module(module)
    return module


def test_a_revision_is_of_the_whole_dataset_whichever_authors_are_read(tmp_path: Path) -> None:
    store = RawStore(tmp_path / "store")
    archive = tmp_path / "sample.zip"
    shutil.make_archive(str(archive.with_suffix("")), "zip", SAMPLE)
    revisions = {
        pull(location, revision=None, authors=authors, store=store).revision
        for location in ("sample", str(archive))
        for authors in (None, ["baseline"], ["kernelindex-torch", "kernelindex-triton"])
    }
    assert len(revisions) == 1
