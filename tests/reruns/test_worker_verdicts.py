"""Every dishonest solution is caught, every honest one passes: run for real, on the CPU."""

import json
import shutil
from pathlib import Path

import pytest

from assets.reruns.bundles import BundleError, BundleItem, read_result
from tests.reruns.conftest import Bench, Run
from tests.reruns.dishonest.cases import Case, load_cases

CASES = load_cases("cpu")


@pytest.fixture(scope="module")
def finished(bench: Bench) -> Run:
    """All cases measured by one worker, side by side."""
    items = [BundleItem(c.name, c.definition, c.workload, c.solution) for c in CASES]
    return bench.run(bench.bundle(items))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_each_case_gets_its_verdict(finished: Run, case: Case) -> None:
    result = finished.result()
    outcome = next(item for item in result.result.items if item.item_id == case.name)
    wrong = case.judge(outcome.status.value, [entry.code for entry in outcome.reasons])
    assert wrong is None, f"{wrong}\n{result.log_of(outcome)}"


def test_the_worker_ends_well_and_the_result_is_whole(finished: Run) -> None:
    assert finished.exit_code == 0, finished.error
    assert finished.result().result.state.value == "complete"


def test_a_cpu_run_can_never_become_verified(finished: Run) -> None:
    result = finished.result()
    assert not result.result.may_become_verified
    assert "CPU_FALLBACK" in [entry.code for entry in result.result.calibration.reasons]
    assert result.environment.cpu_fallback is True


def test_every_item_is_announced_with_its_status(finished: Run) -> None:
    said = {e["item_id"]: e["status"] for e in finished.events if e["event"] == "item_finished"}
    assert said == {item.item_id: item.status.value for item in finished.result().result.items}


def test_passed_items_name_the_reference_they_were_compared_with(finished: Run) -> None:
    for item in finished.result().result.items:
        if item.status.value == "PASSED":
            assert item.statistics is not None
            assert item.reference_statistics is not None
            expected = item.reference_statistics.median / item.statistics.median
            assert item.speedup == pytest.approx(expected)


def test_traces_carry_a_latency_only_where_the_item_passed(finished: Run) -> None:
    for trace in finished.result().traces:
        evaluation = trace["evaluation"]
        assert (evaluation["performance"] is not None) == (evaluation["status"] == "PASSED")


def test_contents_change_with_every_timed_call(finished: Run) -> None:
    seeds = [s.seed for s in finished.result().samples if s.subject == "candidate"]
    assert len(set(seeds)) == len(seeds)


def test_the_call_convention_says_what_decided_it(finished: Run) -> None:
    conventions = {item.item_id: item.call_convention for item in finished.result().result.items}
    stated, inferred = (
        conventions["honest_destination"],
        conventions["honest_destination_and_return"],
    )
    assert stated is not None
    assert inferred is not None
    assert (stated.style, stated.decided_by) == ("destination", "field")
    assert (inferred.style, inferred.decided_by) == ("destination", "signature")


def test_no_log_shows_where_the_worker_kept_its_files(finished: Run) -> None:
    result = finished.result()
    for item in result.result.items:
        assert "kernelindex-rerun-" not in result.log_of(item)


def test_a_result_that_was_changed_afterwards_is_refused(finished: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished.out, copy)
    read_result(copy, finished.bundle)
    samples = copy / "samples.jsonl"
    samples.write_text(samples.read_text().replace('"device_ns": 1', '"device_ns": 2', 1))
    with pytest.raises(BundleError, match=r"samples\.jsonl"):
        read_result(copy, finished.bundle)


def test_statistics_that_do_not_follow_from_the_samples_are_refused(
    finished: Run, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished.out, copy)
    document = json.loads((copy / "result.json").read_text())
    passed = next(item for item in document["items"] if item["status"] == "PASSED")
    passed["statistics"]["median"] //= 2
    (copy / "result.json").write_text(json.dumps(document))
    with pytest.raises(BundleError, match="median"):
        read_result(copy, finished.bundle)


@pytest.mark.parametrize(
    ("field", "value"),
    [("nonce", "another"), ("bundle_id", "sha256:0"), ("may_become_verified", True), ("items", [])],
)
def test_a_result_must_answer_its_own_job(
    finished: Run, tmp_path: Path, field: str, value: object
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished.out, copy)
    document = json.loads((copy / "result.json").read_text())
    (copy / "result.json").write_text(json.dumps({**document, field: value}))
    with pytest.raises(BundleError):
        read_result(copy, finished.bundle)


def test_a_file_that_nobody_listed_is_refused(finished: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished.out, copy)
    (copy / "extra.txt").write_text("")
    with pytest.raises(BundleError, match=r"extra\.txt"):
        read_result(copy, finished.bundle)
