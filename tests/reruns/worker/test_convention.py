"""How an entry point is called is read from its document, else from its signature."""

import pytest

from assets.reruns.worker.convention import infer_convention
from assets.reruns.worker.documents import Solution


def solution(source: str, language: str = "python", stated: bool | None = None) -> Solution:
    file = "main.cpp" if language == "cuda" else "main.py"
    return Solution("s", "us", language, file, "run", ((file, source),), None, stated)


def convention(
    source: str, language: str = "python", stated: bool | None = None
) -> tuple[str, str]:
    found = infer_convention(solution(source, language, stated), ["A", "B"], ["C"])
    return found.style, found.arguments


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def run(A, B): ...", ("returns", "keyword")),
        ("def run(x, y): ...", ("returns", "positional")),
        ("def run(A, B, C): ...", ("destination", "keyword")),
        ("def run(x, y, out): ...", ("destination", "positional")),
        ("def run(A, B, C=None): ...", ("returns", "keyword")),
        ("def run(A, B, eps=1e-6): ...", ("returns", "keyword")),
        ("def run(*args, **kwargs): ...", ("returns", "keyword")),
        ("def run(*args): ...", ("returns", "positional")),
        ("def run(A, B, **kwargs): ...", ("returns", "keyword")),
        ("def run(*, B, A): ...", ("returns", "keyword")),
        ("def run(A, B, /): ...", ("returns", "positional")),
        ("def kernel(A, B, C): ...\nrun = kernel", ("destination", "keyword")),
        ("from elsewhere import run", ("returns", "positional")),
        ("def run(A, B:", ("returns", "positional")),
    ],
)
def test_python_entry_points(source: str, expected: tuple[str, str]) -> None:
    assert convention(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('Tensor run(Tensor A, Tensor B) { }\nm.def("run", &run);', ("returns", "positional")),
        (
            'Tensor run(const Tensor& A, const Tensor& B, Tensor& C) { }\nm.def("run", &run);',
            ("destination", "positional"),
        ),
        (
            'Tensor run(Tensor A, Tensor B, Tensor C = Tensor()) { }\nm.def("run", &run, "text",'
            ' py::arg("A"), py::arg("B"), py::arg("C") = Tensor());',
            ("returns", "keyword"),
        ),
        (
            # pybind11 does not see C++ defaults without py::arg: all three must be given.
            'Tensor run(Tensor A, Tensor B, Tensor C = Tensor()) { }\nm.def("run", &run);',
            ("destination", "positional"),
        ),
        (
            'Tensor other(Tensor A, Tensor B) { }\nm.def("run", &other, "named elsewhere");',
            ("returns", "positional"),
        ),
        (
            'Tensor run(py::args args, py::kwargs kwargs) { }\nm.def("run", &run);',
            ("returns", "keyword"),
        ),
        (
            "// Tensor run(int wrong);\nTensor run(std::pair<int, int> A, Tensor B) { }\n"
            'm.def("run", &run);',
            ("returns", "positional"),
        ),
    ],
)
def test_cuda_entry_points(source: str, expected: tuple[str, str]) -> None:
    assert convention(source, "cuda") == expected


@pytest.mark.parametrize("stated", [True, False])
def test_what_the_document_says_is_obeyed(stated: bool) -> None:
    found = infer_convention(solution("def run(A, B, C): ...", stated=stated), ["A", "B"], ["C"])
    assert found.decided_by == "field"
    assert found.style == ("destination" if stated else "returns")


def test_the_signature_is_read_without_running_the_source() -> None:
    source = "raise SystemExit\ndef run(A, B, C): ..."
    assert convention(source) == ("destination", "keyword")
