"""Upstream's score of the sample's authors, computed from the documents themselves."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import duckdb
import pytest

import assets.traces
from assets.tables.warehouse import Warehouse

# What the code of upstream's own web page gives for the sample.
BY_UPSTREAM = {
    "kernelindex-triton": 41.34,
    "kernelindex-triton-tiled": 21.58,
    "kernelindex-torch": 5.97,
    "baseline": 1.0,
}


def scores_from_documents() -> dict[str, float]:
    """Each solution scored by its ratios, 0 with a failure; an author has the best solution."""
    lines = [
        (file.relative_to(SAMPLE).parts[1], json.loads(line))
        for file in SAMPLE.glob("traces/**/*.jsonl")
        for line in file.read_text().splitlines()
    ]
    passed: dict[tuple[str, str, str, str], float] = {}
    failed: set[tuple[str, str, str]] = set()
    for author, trace in lines:
        solution = author, trace["definition"], trace["solution"]
        if trace["evaluation"]["status"] != "PASSED":
            failed.add(solution)
            continue
        key = (*solution, trace["workload"]["uuid"])
        latency_ms = trace["evaluation"]["performance"]["latency_ms"]
        passed[key] = min(latency_ms, passed.get(key, latency_ms))
    baseline = {key[1::2]: ms for key, ms in passed.items() if key[0] == "baseline"}
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (author, definition, solution_name, uuid), latency_ms in passed.items():
        ratios[author, definition, solution_name].append(baseline[definition, uuid] / latency_ms)
    best: dict[tuple[str, str], float] = defaultdict(float)
    for solution in {*ratios, *failed}:
        score = 0.0 if solution in failed else fmean(ratios[solution])
        best[solution[:2]] = max(best[solution[:2]], score)
    return {
        author: fmean(score for (of, _), score in best.items() if of == author)
        for author, _ in best
    }


SAMPLE = Path(assets.traces.__file__).parent / "sample"


def test_the_score_of_each_author_is_upstreams(sample_warehouse: Path) -> None:
    database = str(Warehouse(sample_warehouse).database)
    with duckdb.connect(database, read_only=True) as connection:
        rows = connection.sql("select author, score from leaderboard_authors_upstream").fetchall()
    assert dict(rows) == pytest.approx(
        scores_from_documents(), rel=1e-4
    )  # latencies are kept in whole ns
    assert {author: round(score, 2) for author, score in rows} == BY_UPSTREAM
