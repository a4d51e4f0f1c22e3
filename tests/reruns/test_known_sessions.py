"""A session is known by its job and its samples, whatever else of it was changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from assets.reruns.errors import ResultRefusedError
from assets.reruns.results import Imported, import_result
from assets.tables.warehouse import Warehouse
from tests.reruns.index import copy_of
from tests.reruns.sessions import (
    PASSED,
    UNBUILT,
    StoredSession,
    changed_copy,
    on_another_day,
    part_of_shipped,
)


def bring(warehouse: Warehouse, folder: Path, runner: str = "one") -> Imported:
    return import_result(warehouse, folder / "bundle", folder / "result", runner)


@pytest.fixture(scope="module")
def known(
    sample_index: Warehouse, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, StoredSession, Imported]:
    """A session that is published, in a database that does not know it yet."""
    folder = tmp_path_factory.mktemp("known")
    own = copy_of(sample_index, folder / "warehouse")
    session = part_of_shipped(folder / "session")
    return own, session, bring(own, session.folder)


def later(session: StoredSession) -> None:
    session.result["finished_at"] = "2026-11-30T03:59:59Z"


def other_worker(session: StoredSession) -> None:
    session.result["worker_version"] = "9.9.9"


def slower_row(session: StoredSession) -> None:
    session.item()["outside_ns_per_call"] += 1


@pytest.mark.parametrize("change", [lambda _: None, later, other_worker, slower_row])
def test_a_session_again_is_the_one_that_is_known(
    known: tuple[Warehouse, StoredSession, Imported],
    tmp_path: Path,
    change: Callable[[StoredSession], None],
) -> None:
    own, session, first = known
    listed = own.publications()
    again = bring(own, changed_copy(session, tmp_path / "copy", change), "another")
    assert again.publication is None
    assert [run.run_digest for run in again.runs] == [run.run_digest for run in first.runs]
    assert own.publications() == listed


def other_driver(session: StoredSession) -> None:
    for place in (session.result, session.environment):
        place["device"]["driver"] = "1.0"


def faster(session: StoredSession) -> None:
    for sample in session.samples_of(PASSED, "candidate", "device"):
        sample["device_ns"] -= 1000
    session.recompute()


def other_log(session: StoredSession) -> None:
    (session.folder / "result" / "logs" / f"{PASSED}.txt").write_text("another")


@pytest.mark.parametrize("change", [other_driver, faster, other_log])
def test_a_known_session_with_other_content_is_refused(
    known: tuple[Warehouse, StoredSession, Imported],
    tmp_path: Path,
    change: Callable[[StoredSession], None],
) -> None:
    own, session, _ = known
    listed = own.publications()
    with pytest.raises(ResultRefusedError, match="were published before"):
        bring(own, changed_copy(session, tmp_path / "copy", change), "another")
    assert own.publications() == listed


def test_samples_under_another_job_are_refused(
    known: tuple[Warehouse, StoredSession, Imported], tmp_path: Path
) -> None:
    def another_job(session: StoredSession) -> None:
        session.bundle["nonce"] = session.result["nonce"] = "another"

    own, session, _ = known
    with pytest.raises(ResultRefusedError, match="published before for another job"):
        bring(own, changed_copy(session, tmp_path / "copy", another_job), "another")


def test_a_job_that_was_measured_again_is_another_session(
    known: tuple[Warehouse, StoredSession, Imported], tmp_path: Path
) -> None:
    def measured_again(session: StoredSession) -> None:
        nonce = session.bundle["nonce"]
        on_another_day(session, "2027-01-01")
        session.bundle["nonce"] = session.result["nonce"] = nonce

    own, session, first = known
    own = copy_of(own, tmp_path / "warehouse")
    again = bring(own, changed_copy(session, tmp_path / "copy", measured_again), "another")
    assert again.publication is not None
    assert {run.run_digest for run in again.runs}.isdisjoint(run.run_digest for run in first.runs)


def test_a_session_without_samples_is_known_by_its_job(
    sample_index: Warehouse, tmp_path: Path
) -> None:
    own = copy_of(sample_index, tmp_path / "warehouse")
    session = part_of_shipped(tmp_path / "session", [UNBUILT])
    session.samples = []
    session.write()
    first = bring(own, session.folder)
    assert first.publication is not None
    again = bring(own, changed_copy(session, tmp_path / "copy", later))
    assert again.publication is None
    assert [run.run_digest for run in again.runs] == [run.run_digest for run in first.runs]
