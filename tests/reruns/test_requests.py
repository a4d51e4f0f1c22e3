"""A request is resolved to exact documents, or refused with the reason that applies."""

import json
from pathlib import Path

import duckdb
import pytest

from assets.reruns.collection import prepare_bundle
from assets.reruns.errors import Refusal, RerunRefusedError
from assets.reruns.lane import chosen_launcher
from assets.reruns.requests import (
    GroupSelection,
    RerunRequest,
    RunsSelection,
    SolutionsSelection,
    TopSelection,
)
from assets.tables.warehouse import Warehouse
from tests.reruns.index import a_run, copy_of, rows

NORM = "rmsnorm_h128_torch_rms_norm"


def asking(selection: object) -> RerunRequest:
    return RerunRequest.model_validate({"selection": selection, "reason": "a test"})


def refused(warehouse: Warehouse, selection: object, folder: Path) -> RerunRefusedError:
    with pytest.raises(RerunRefusedError) as caught:
        prepare_bundle(warehouse, asking(selection), folder / "bundle")
    assert not (folder / "bundle").exists()
    return caught.value


def test_a_run_is_bundled_with_the_bytes_that_were_published(
    sample_index: Warehouse, tmp_path: Path
) -> None:
    digest = a_run(sample_index, NORM)
    prepared = prepare_bundle(
        sample_index, asking(RunsSelection(runs=(digest[7:23],))), tmp_path / "bundle"
    )
    [item] = prepared.bundle.items
    assert item.reproduces == digest
    assert rows(
        sample_index,
        f"select count(*) from solutions where document_digest = '{item.solution.digest}'",
    ) == [(1,)]


def test_tensor_files_of_the_sample_come_along(sample_index: Warehouse, tmp_path: Path) -> None:
    digest = a_run(sample_index, "gqa_paged_decode_triton_sequence")
    prepared = prepare_bundle(
        sample_index, asking(RunsSelection(runs=(digest,))), tmp_path / "bundle"
    )
    assert prepared.bundle.items[0].tensors


def test_groups_and_leaderboards_stand_for_several_runs(
    sample_index: Warehouse, tmp_path: Path
) -> None:
    [(key, passed)] = rows(
        sample_index,
        "select comparison_key, count(distinct implementation_digest) from runs "
        "where status = 'passed' group by all order by 2 desc, 1 limit 1",
    )
    whole = prepare_bundle(
        sample_index, asking(GroupSelection(comparison_key=str(key))), tmp_path / "group"
    )
    top = TopSelection(operation="rmsnorm_h128", top=2, workloads_per_solution=1)
    first = prepare_bundle(sample_index, asking(top), tmp_path / "top")
    assert len(whole.bundle.items) == passed
    assert len(first.bundle.items) == 2


@pytest.mark.parametrize(
    ("selection", "refusal"),
    [
        (RunsSelection(runs=("0123456789abcdef",)), Refusal.UNKNOWN_RUN),
        (RunsSelection(runs=("no digest",)), Refusal.UNKNOWN_RUN),
        (GroupSelection(comparison_key="ffffffff"), Refusal.UNKNOWN_GROUP),
        (TopSelection(operation="no_such_operation"), Refusal.UNKNOWN_OPERATION),
        (
            SolutionsSelection(operation="rmsnorm_h128", solutions=("nobody",)),
            Refusal.UNKNOWN_SOLUTION,
        ),
        (
            SolutionsSelection(operation="rmsnorm_h128", solutions=(NORM,), workload="zzz"),
            Refusal.UNKNOWN_WORKLOAD,
        ),
    ],
)
def test_what_is_not_there_is_refused(
    sample_index: Warehouse, tmp_path: Path, selection: object, refusal: Refusal
) -> None:
    assert refused(sample_index, selection, tmp_path).refusal is refusal


def test_a_beginning_that_several_runs_share_is_refused_with_their_names(
    sample_index: Warehouse, tmp_path: Path
) -> None:
    twins = copy_of(sample_index, tmp_path / "twins")
    digest = a_run(twins, NORM)
    with duckdb.connect(str(twins.database)) as connection:
        connection.execute(
            "insert into run_facts select * replace ($twin as run_digest) from run_facts "
            "where run_digest = $digest",
            {"digest": digest, "twin": digest[:20] + "0" * 51},
        )
    error = refused(twins, RunsSelection(runs=(digest[7:20],)), tmp_path)
    assert error.refusal is Refusal.AMBIGUOUS_RUN
    assert sorted(label.split(" ")[0] for label in error.candidates) == sorted(
        [digest[7:24], digest[7:20] + "0000"]
    )
    assert NORM in str(error)


def test_a_run_without_its_source_is_refused(sample_index: Warehouse, tmp_path: Path) -> None:
    poor = copy_of(sample_index, tmp_path / "poor")
    digest = a_run(poor, NORM)
    [(path,)] = rows(
        poor,
        "select file_digest from source_files inner join solutions using (dataset, path) "
        f"where solution_name = '{NORM}'",
    )
    for stored in (poor.root / "raw").rglob(f"*{str(path)[7:]}*"):
        stored.unlink()
    error = refused(poor, RunsSelection(runs=(digest,)), tmp_path)
    assert error.refusal is Refusal.NO_SOURCE


def test_a_launcher_that_is_not_configured_is_refused(
    sample_index: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = copy_of(sample_index, tmp_path / "own")
    monkeypatch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
    with pytest.raises(RerunRefusedError) as caught:
        chosen_launcher(own, "slurm")
    assert caught.value.refusal is Refusal.LAUNCHER_NOT_CONFIGURED
    settings = tmp_path / "launchers.json"
    settings.write_text(json.dumps({"selected": "nowhere"}))
    monkeypatch.setenv("KERNELINDEX_LAUNCHERS", str(settings))
    with pytest.raises(RerunRefusedError, match="no readable launcher settings"):
        chosen_launcher(own, None)


def test_a_request_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        RerunRequest.model_validate({"selection": {"kind": "runs", "runs": ["abcd"]}})
