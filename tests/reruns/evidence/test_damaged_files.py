"""Files of either bundle that no reader gets through: refused, never an error of another kind.

Signed again, so that what stands in the file is looked at. `test_damaged_bundles.py` goes on with
a hundred variants of each through the command.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assets.reruns.bundles import BundleError, read_bundle, read_result
from tests.reruns.sessions import UNBUILT, StoredSession
from tests.reruns.test_damaged_bundles import KINDS, at_most, sign


def write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


DAMAGES = {
    "nested deeply": write(b"[" * 100_000 + b"]" * 100_000),
    "nested in objects": write(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "nested more than anything is": write(b"[" * 200 + b"]" * 200),
    "no UTF-8": write(b'{"a": "\xff\xfe"}'),
    "half a character": write(b'{"a": "\\ud800"}'),
    "a number of 5,000 digits": write(b"9" * 5000),
    "no number": write(b"NaN"),
    "empty": write(b""),
    "a pipe": instead(os.mkfifo),
    "a folder": instead(Path.mkdir),
    "a link": instead(lambda path: path.symlink_to("/etc/hostname")),
}


OF_ANY_FILE = ("a pipe", "a folder", "a link")
LOG = f"result/logs/{UNBUILT}.txt"
# A log is any text, and nothing here reads a tensor file.
CASES = [
    *((kind, name) for kind in KINDS[:-1] if kind != "bundle/tensors" for name in DAMAGES),
    *(("bundle/tensors", name) for name in OF_ANY_FILE),
    *((LOG, name) for name in (*OF_ANY_FILE, "no UTF-8")),
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_no_reader_gets_through_is_refused(
    part: StoredSession, tmp_path: Path, kind: str, name: str
) -> None:
    place = part.folder / kind
    file = sorted(place.iterdir())[0] if place.is_dir() else place
    folder = tmp_path / "copy"
    shutil.copytree(part.folder, folder)
    DAMAGES[name](folder / file.relative_to(part.folder))
    sign(folder)
    with at_most(20), pytest.raises(BundleError) as refused:
        read_result(folder / "result", read_bundle(folder / "bundle"))
    assert len(str(refused.value).splitlines()) == 1
