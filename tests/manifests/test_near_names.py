"""An unknown solution is told from what it was probably meant to be."""

import time

import pytest

from assets.manifests.near_names import near_name
from tests.builders import OPERATION, SOLUTION, Ingested, dataset, ingest, solution, trace


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("torch_gemm", ["gemm_torch", "gemm"], "gemm_torch"),
        ("gemm_torch", ["torch_gemm"], "torch_gemm"),
        ("gemm_torch", ["gemm", "rope"], "gemm"),
        ("gemm", ["gemm_torch", "gemm_a_b"], "gemm_torch"),
        ("Gemm-Torch", ["gemm_torch"], "gemm_torch"),
        ("gemm_triton_v1", ["gemm_tritton_v1", "rope"], "gemm_tritton_v1"),
        ("softmax", ["gemm", "rope"], None),
        ("___", ["---"], None),
        ("gemm", [], None),
        ("x" * 100_000, ["x" * 100_001], None),
    ],
)
def test_the_nearest_name_is_proposed(name: str, known: list[str], near: str | None) -> None:
    assert near_name(name, known) == near


def test_many_names_cost_little() -> None:
    known = [f"solution_{number}_of_the_author" for number in range(20_000)]
    before = time.process_time()
    assert near_name("author_of_the_solution_77", known) == "solution_77_of_the_author"
    assert near_name("nothing", known) is None
    assert time.process_time() - before < 2


def messages(found: Ingested, reason: str) -> list[str]:
    return [row["message"] for row in found["quarantine"] if row["reason"] == reason]


def test_an_unknown_solution_comes_with_a_near_one(tmp_path) -> None:
    traces = [trace(solution=f"new_{SOLUTION}"), trace(solution="else")]
    found = ingest(dataset(tmp_path / "d", traces=traces), work=tmp_path)
    assert messages(found, "UNKNOWN_SOLUTION") == [
        f"no file of this dataset holds solution 'new_{SOLUTION}'; {OPERATION!r} has "
        f"{SOLUTION!r}, did you mean that?",
        "no file of this dataset holds solution 'else'",
    ]


def test_what_is_ambiguous_is_said(tmp_path) -> None:
    path = f"solutions/{{}}/toy/{OPERATION}/{SOLUTION}.json"
    found = ingest(
        dataset(
            tmp_path / "d",
            {
                path.format("bob"): solution(author="bob", spec__language="cuda"),
                f"traces/toy/{OPERATION}.jsonl": [trace()],
            },
        ),
        work=tmp_path,
    )
    [message] = messages(found, "AMBIGUOUS_SOLUTION")
    assert message == (
        f"solution {SOLUTION!r} of {OPERATION!r} may be {path.format('ann')} (of 'ann'), "
        f"{path.format('bob')} (of 'bob'): their contents differ, and the trace lies in no folder "
        "of one of these authors"
    )
