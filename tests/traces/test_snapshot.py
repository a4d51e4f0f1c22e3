from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from assets.traces.errors import DatasetError
from assets.traces.snapshot import (
    DatasetFile,
    DatasetSnapshot,
    FileProblem,
    ProblemReason,
    load_snapshot,
    save_snapshot,
)


def file(path="definitions/a.json", content="1"):
    return DatasetFile(
        path=path, digest="sha256:" + content * 64, blob_id=content * 40, size_bytes=3
    )


def snapshot(**changes):
    fields = {
        "dataset": "owner/name",
        "url": "https://huggingface.co/datasets/owner/name",
        "location": "hf://datasets/owner/name",
        "revision": "a" * 40,
        "revision_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "authors": ("x",),
        "files": (file(), file("traces/b.jsonl", "2")),
        "problems": (
            FileProblem(path="../x", reason=ProblemReason.UNSAFE_PATH, message="../x: leaves"),
        ),
    }
    return DatasetSnapshot.model_validate(fields | changes)


def test_a_saved_snapshot_is_loaded_unchanged(tmp_path):
    save_snapshot(snapshot(), tmp_path / "s.json")
    assert load_snapshot(tmp_path / "s.json") == snapshot()
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"dataset": 1}'])
def test_an_unreadable_snapshot_file_is_named(tmp_path, text):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(DatasetError, match=r"s\.json: not a readable dataset snapshot"):
        load_snapshot(tmp_path / "s.json")


def test_the_snapshot_id_depends_on_content_and_not_on_where_it_was_read():
    same = snapshot(location="/elsewhere", url=None, revision_at=None, problems=())
    assert same.snapshot_id == snapshot().snapshot_id
    for change in (
        {"dataset": "other/name"},
        {"revision": "b" * 40},
        {"authors": None},
        {"authors": ()},
        {"files": (file(),)},
        {"files": (file(content="3"), file("traces/b.jsonl", "2"))},
    ):
        assert snapshot(**change).snapshot_id != snapshot().snapshot_id


@pytest.mark.parametrize(
    "change",
    [
        {"revision": "main"},
        {"files": (file("b.json"), file("a.json"))},
        {"files": (file(), file())},
        {"revision_at": datetime(2026, 1, 2)},
    ],
)
def test_a_snapshot_that_breaks_its_promises_cannot_be_made(change):
    with pytest.raises(ValidationError):
        snapshot(**change)
