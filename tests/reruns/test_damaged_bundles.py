"""A hundred damaged variants of each file of a job and of a result: one line, nothing published.

Each as it comes, where a size or digest gives it away at once, and signed again, so that what
stands in the file is looked at. The session is one that is known, so that whatever is believed
publishes nothing either.
"""

import contextlib
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assets.leaderboards.build import build_database
from assets.reruns.results import import_result
from assets.reruns.worker.job import bundle_id_of, canonical_json, digest_file
from assets.tables.warehouse import Warehouse
from pipelines.cli import app
from tests.reruns.damage import variants
from tests.reruns.index import copy_of
from tests.reruns.sessions import PASSED, UNBUILT, WITH_TENSORS, StoredSession, part_of_shipped

KINDS = (
    "bundle/bundle.json",
    "bundle/definitions",
    "bundle/workloads",
    "bundle/solutions",
    "bundle/tensors",
    "result/result.json",
    "result/environment.json",
    "result/samples.jsonl",
    "result/traces.jsonl",
    f"result/logs/{UNBUILT}.txt",
)


@pytest.fixture(scope="module")
def known(
    sample_index: Warehouse, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, StoredSession]:
    folder = tmp_path_factory.mktemp("known")
    own = copy_of(sample_index, folder / "warehouse")
    session = part_of_shipped(folder / "session", [PASSED, UNBUILT, WITH_TENSORS])
    import_result(own, session.folder / "bundle", session.folder / "result")
    build_database(own)
    return own, session


def sign(folder: Path) -> None:
    """Give every file the size and digest that it has now, as far as that is possible."""
    bundle, result = folder / "bundle" / "bundle.json", folder / "result" / "result.json"
    if not (bundle.is_file() and result.is_file()):
        return
    unsignable = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
    with contextlib.suppress(*unsignable):
        job, answer = json.loads(bundle.read_bytes()), json.loads(result.read_bytes())
        for place, document in ((bundle, job), (result, answer)):
            for path, entry in document["files"].items():
                file = place.parent / path
                if file.is_file():
                    entry |= {"digest": digest_file(file), "size_bytes": file.stat().st_size}
        for item, outcome in zip(job["items"], answer["items"], strict=True):
            for kind in ("definition", "workload", "solution"):
                digest = job["files"][item[kind]["path"]]["digest"]
                item[kind]["digest"] = outcome[f"{kind}_digest"] = digest
            for tensor in item["tensors"]:
                tensor["digest"] = job["files"][tensor["path"]]["digest"]
        job["bundle_id"] = answer["bundle_id"] = bundle_id_of(job)
        bundle.write_bytes(canonical_json(job))
        result.write_text(json.dumps(answer))


class HungError(BaseException):
    """No error that a command could take for one of its own."""


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """An alarm for what waits for ever, as opening a pipe does."""

    def ring(*_: object) -> None:
        raise HungError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.integration
@pytest.mark.parametrize("signed", [False, True], ids=["as it comes", "signed again"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_ends_in_one_line_and_publishes_nothing(
    known: tuple[Warehouse, StoredSession],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    signed: bool,
) -> None:
    own, session = known
    monkeypatch.setenv("KERNELINDEX_WAREHOUSE", str(own.root))
    place = session.folder / kind
    file = sorted(place.iterdir())[0] if place.is_dir() else place
    listed = own.publications()
    tried = refused = 0
    for name, damage in variants(file):
        folder = tmp_path / "copy"
        shutil.copytree(session.folder, folder)
        damage(folder / file.relative_to(session.folder))
        if signed:
            sign(folder)
        with at_most(20):
            result = CliRunner().invoke(app, ["rerun", "import", str(folder)])
        tried += 1
        assert isinstance(result.exception, SystemExit | None), (name, result.exception)
        assert result.exit_code in (0, 1, 2), (name, result.output)
        if result.exit_code:
            refused += 1
            assert result.stdout == "", name
            assert len(result.stderr.splitlines()) == 1, (name, result.stderr)
        else:
            assert "Nothing new: this result was published before." in result.stdout, name
        assert own.publications() == listed, name
        shutil.rmtree(folder)
    assert tried == 100
    assert refused >= (20 if signed else 50)
