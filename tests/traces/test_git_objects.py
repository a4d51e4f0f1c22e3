import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.traces.git_objects import blob_id, tree_id

NAMES = st.text("ab.-0é", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def without_conflicts(files):
    folders = {path[:i] for path in files for i, letter in enumerate(path) if letter == "/"}
    return {path: data for path, data in files.items() if path not in folders}


@settings(max_examples=15)
@given(st.dictionaries(PATHS, st.binary(max_size=20), min_size=1, max_size=12))
def test_tree_and_blob_ids_are_those_of_git(tmp_path_factory, files):
    files = without_conflicts(files)
    root = tmp_path_factory.mktemp("tree")
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    git = ["git", "-C", str(root), "-c", "core.autocrlf=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A", "-f"], check=True)
    written = subprocess.run([*git, "write-tree"], check=True, capture_output=True, text=True)
    assert tree_id({path: blob_id(data) for path, data in files.items()}) == written.stdout.strip()


def test_a_path_that_is_file_and_folder_is_an_error():
    with pytest.raises(ValueError, match="a is a file as well as a folder"):
        tree_id({"a": "0" * 40, "a/b": "0" * 40})
