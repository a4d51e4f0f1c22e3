from hypothesis import given
from hypothesis import strategies as st

from assets.traces.changes import RenamedFile, compare
from assets.traces.snapshot import DatasetFile, DatasetSnapshot


def snapshot(files):
    return DatasetSnapshot(
        dataset="own/data",
        url=None,
        location="x",
        revision="a" * 40,
        revision_at=None,
        authors=None,
        files=tuple(
            DatasetFile(
                path=path, digest=f"sha256:{content:064x}", blob_id=f"{content:040x}", size_bytes=1
            )
            for path, content in sorted(files.items())
        ),
    )


def test_each_file_is_added_changed_renamed_removed_or_unchanged():
    changes = compare(
        snapshot({"same": 1, "edited": 2, "old/moved": 3, "gone": 4}),
        snapshot({"same": 1, "edited": 5, "new/moved": 3, "fresh": 6}),
    )
    assert changes.unchanged == ("same",)
    assert changes.changed == ("edited",)
    assert changes.renamed == (RenamedFile(old_path="old/moved", new_path="new/moved"),)
    assert changes.removed == ("gone",)
    assert changes.added == ("fresh",)


def test_of_equal_files_the_one_with_the_same_name_is_the_one_renamed():
    changes = compare(snapshot({"a/x": 1, "a/y": 1}), snapshot({"b/y": 1, "b/z": 1}))
    assert changes.renamed == (
        RenamedFile(old_path="a/x", new_path="b/z"),
        RenamedFile(old_path="a/y", new_path="b/y"),
    )


def test_a_copy_is_added_and_not_renamed():
    assert compare(snapshot({"a": 1}), snapshot({"a": 1, "b": 1})).added == ("b",)


def test_the_first_snapshot_adds_everything():
    assert compare(None, snapshot({"a": 1})).added == ("a",)


FILES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3))


@given(FILES, FILES)
def test_every_path_is_accounted_for_exactly_once(before, after):
    changes = compare(snapshot(before), snapshot(after))
    old = [*changes.changed, *changes.unchanged, *changes.removed]
    new = [*changes.changed, *changes.unchanged, *changes.added]
    assert sorted(old + [pair.old_path for pair in changes.renamed]) == sorted(before)
    assert sorted(new + [pair.new_path for pair in changes.renamed]) == sorted(after)
    assert all(before[pair.old_path] == after[pair.new_path] for pair in changes.renamed)
    assert changes.is_empty == (before == after)
