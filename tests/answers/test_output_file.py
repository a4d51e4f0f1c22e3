"""An answer appears whole or not at all, and never in the place of what is no plain file."""

import os
import threading
from pathlib import Path

import pytest

from assets.answers.output_file import appearing


def write(path: Path, text: str = "answer") -> None:
    with appearing(path) as temporary:
        temporary.write_text(text)


def test_a_file_appears_or_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "answer.csv"
    for text in ("first", "second"):
        write(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "answer.csv"
    path.write_text("before")
    with pytest.raises(TypeError), appearing(path) as temporary:
        temporary.write_bytes("no bytes")  # type: ignore[arg-type]
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "data" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    target.write_text("before")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_text() == "answer"


def test_a_link_to_nothing_yet_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "target.csv")
    write(link)
    assert link.is_symlink()
    assert (tmp_path / "target.csv").read_text() == "answer"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write(pipe)
    reader.join(timeout=10)
    assert found == ["answer"]
    assert pipe.is_fifo()


def test_a_device_is_written_to_and_stays_one() -> None:
    write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_says_so_and_stays_one() -> None:
    with pytest.raises(OSError, match="No space"):
        write(Path("/dev/full"))
    assert Path("/dev/full").is_char_device()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []
