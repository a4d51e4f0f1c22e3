"""Directories as streams: whole or not at all, nothing outside."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.reruns.launchers.supervisor.transfer import TransferError, pack, unpack

LIMIT_BYTES = 1 << 20


def folder(path: Path) -> Path:
    (path / "deep" / "er").mkdir(parents=True)
    (path / "deep" / "er" / "file").write_bytes(b"\0content" * 3000)
    (path / "result.json").write_text("{}")
    (path / "link").symlink_to("/etc/passwd")
    return path


def stream(path: Path) -> bytes:
    target = io.BytesIO()
    pack(path, target)
    return target.getvalue()


def test_files_arrive_and_links_do_not(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    assert unpack(io.BytesIO(stream(source)), tmp_path / "target", LIMIT_BYTES)
    names = {
        str(path.relative_to(tmp_path / "target")) for path in (tmp_path / "target").rglob("*")
    }
    assert names == {"deep", "deep/er", "deep/er/file", "result.json"}
    assert (tmp_path / "target/deep/er/file").read_bytes() == b"\0content" * 3000


def test_a_second_arrival_changes_nothing(tmp_path: Path) -> None:
    sent = stream(folder(tmp_path / "source"))
    assert unpack(io.BytesIO(sent), tmp_path / "target", LIMIT_BYTES)
    (tmp_path / "target" / "result.json").write_text("kept")
    assert not unpack(io.BytesIO(sent), tmp_path / "target", LIMIT_BYTES)
    assert (tmp_path / "target" / "result.json").read_text() == "kept"


@given(share=st.floats(0, 0.999))
def test_a_stream_that_is_cut_anywhere_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    tmp_path = tmp_path_factory.mktemp("cut")
    sent = stream(folder(tmp_path / "source"))
    content = sent[: sent.rindex(b".complete")]  # what follows is the closing entry
    cut = content[: int(len(content) * share)]
    with pytest.raises(TransferError):
        unpack(io.BytesIO(cut), tmp_path / "target", LIMIT_BYTES)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("../outside", tarfile.REGTYPE, "leads outside"),
        ("/absolute", tarfile.REGTYPE, "leads outside"),
        ("link", tarfile.SYMTYPE, "no regular file"),
        ("hard", tarfile.LNKTYPE, "no regular file"),
        ("device", tarfile.CHRTYPE, "no regular file"),
    ],
)
def test_entries_that_could_do_harm_are_refused(
    tmp_path: Path, name: str, kind: bytes, message: str
) -> None:
    sent = io.BytesIO()
    with tarfile.open(fileobj=sent, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.type = kind
        member.linkname = "/etc/passwd"
        archive.addfile(member)
    sent.seek(0)
    with pytest.raises(TransferError, match=message):
        unpack(sent, tmp_path / "target", LIMIT_BYTES)
    assert list(tmp_path.iterdir()) == []
