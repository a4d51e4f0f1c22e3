"""Definitions, workloads and solutions of any age become problems, or say why not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.reruns.worker.convention import infer_convention
from assets.reruns.worker.documents import DocumentError, Problem, problem_of, solution_of
from assets.reruns.worker.tolerance import tolerance_rule

DEFINITION = {
    "name": "d",
    "op_type": "gemm",
    "axes": {
        "M": {"type": "var"},
        "K": {"type": "const", "value": 8},
        "half": {"type": "expr", "expression": "K // 2"},
    },
    "inputs": {
        "a": {"shape": ["M", "K / 4"], "dtype": "float16"},
        "s": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "half", 1], "dtype": "float8_e4m3"}},
}
WORKLOAD = {
    "axes": {"M": 3},
    "inputs": {"a": {"type": "random"}, "s": {"type": "scalar", "value": 0.5}},
}


def test_axes_expressions_and_old_data_type_names_are_resolved() -> None:
    problem = problem_of(DEFINITION, WORKLOAD, {})
    assert [spec.shape for spec in problem.inputs] == [(3, 2), ()]
    assert problem.inputs[1].value == 0.5
    assert problem.outputs[0].shape == (3, 4, 1)
    assert problem.outputs[0].dtype == "float8_e4m3fn"


def test_a_problem_survives_the_way_into_a_process() -> None:
    problem = problem_of(DEFINITION, WORKLOAD, {})
    assert Problem.from_document(json.loads(json.dumps(problem.document()))) == problem


def test_a_whole_workload_row_is_as_good_as_a_workload() -> None:
    row = {"definition": "d", "workload": WORKLOAD, "solution": None}
    assert problem_of(DEFINITION, row, {}) == problem_of(DEFINITION, WORKLOAD, {})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"axes": {}}, "UNSUPPORTED_WORKLOAD"),
        ({"inputs": {"a": {"type": "random"}}}, "UNSUPPORTED_WORKLOAD"),
        (
            {
                "inputs": {
                    **WORKLOAD["inputs"],
                    "a": {"type": "safetensors", "path": "x", "tensor_key": "k"},
                }
            },
            "MISSING_TENSOR",
        ),
    ],
)
def test_workloads_that_cannot_be_made_say_why(change: dict[str, object], code: str) -> None:
    with pytest.raises(DocumentError) as caught:
        problem_of(DEFINITION, {**WORKLOAD, **change}, {})
    assert caught.value.code == code


def test_expressions_are_not_evaluated_as_python() -> None:
    definition = {**DEFINITION, "outputs": {"y": {"shape": ["__import__('os')"], "dtype": "bool"}}}
    with pytest.raises(DocumentError):
        problem_of(definition, WORKLOAD, {})


@pytest.mark.parametrize("path", ["/etc/main.py", "../main.py", "a/../../main.py"])
def test_source_paths_stay_in_their_folder(path: str) -> None:
    document = {
        "spec": {"language": "python", "entry_point": f"{path}::run"},
        "sources": [{"path": path, "content": ""}],
    }
    with pytest.raises(DocumentError) as caught:
        solution_of(document)
    assert caught.value.code == "UNSAFE_SOURCE_PATH"


def test_a_workloads_own_tolerance_comes_first() -> None:
    own = {"tolerance": {"max_atol": 0.5, "max_rtol": 0.25, "required_matched_ratio": 0.99}}
    rule = tolerance_rule("gemm", {"workload": {**WORKLOAD, **own}})
    assert (rule.absolute, rule.relative, rule.matched_ratio) == (0.5, 0.25, 0.99)
    assert rule.source == "workload"
    assert tolerance_rule("gemm", WORKLOAD).source == "family gemm"
    assert tolerance_rule("rmsnorm", WORKLOAD).source == "default"


@pytest.fixture
def dataset(corpus: Path) -> Path:
    return corpus / "flashinfer-trace"


def documents(folder: Path) -> Iterator[dict[str, object]]:
    for path in sorted(folder.rglob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def test_every_real_solution_has_a_call_convention(dataset: Path) -> None:
    definitions = {document["name"]: document for document in documents(dataset / "definitions")}
    decided = []
    for document in documents(dataset / "solutions"):
        definition = definitions[document["definition"]]
        solution = solution_of(document)
        found = infer_convention(solution, list(definition["inputs"]), list(definition["outputs"]))  # type: ignore[call-overload]
        decided.append(found.decided_by)
    assert len(decided) > 200
    assert "default" not in decided


def test_every_real_workload_can_be_resolved(dataset: Path) -> None:
    definitions = {document["name"]: document for document in documents(dataset / "definitions")}
    resolved = 0
    for path in sorted((dataset / "workloads").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            tensors = {
                entry["path"]: "somewhere"
                for entry in row["workload"]["inputs"].values()
                if entry["type"] == "safetensors"
            }
            problem_of(definitions[row["definition"]], row, tensors)  # type: ignore[arg-type]
            resolved += 1
    assert resolved > 600
