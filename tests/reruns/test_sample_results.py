"""The archives that ship with the sample; whatever else one can hold is refused on any Python."""

import io
import tarfile
from pathlib import Path

import pytest

from assets.reruns.errors import ResultRefusedError
from assets.reruns.sample_results import ARCHIVES, unpack

Member = tuple[tarfile.TarInfo, bytes]


def a_file(name: str, data: bytes = b"x") -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info, data


def of_kind(kind: bytes, name: str, target: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def archive_of(path: Path, *members: Member) -> Path:
    with tarfile.open(path, "w:xz") as stream:
        for info, data in members:
            stream.addfile(info, io.BytesIO(data))
    return path


def test_the_shipped_archives_unpack_as_they_are(tmp_path: Path) -> None:
    for archive in ARCHIVES:
        unpack(archive, tmp_path / archive.name)
        with tarfile.open(archive) as stream:
            names = {info.name for info in stream if info.isreg()}
            made = tmp_path / archive.name
            found = {str(p.relative_to(made)) for p in made.rglob("*") if p.is_file()}
            assert found == names
            for name in names:
                source = stream.extractfile(name)
                assert source is not None
                assert (made / name).read_bytes() == source.read()


@pytest.mark.parametrize(
    "members",
    [
        [a_file("../outside")],
        [a_file("a/../../outside")],
        [a_file("/outside")],
        [a_file("C:/outside")],
        [a_file("a\\..\\outside")],
        [a_file("a//b")],
        [a_file("a\nb")],
        [a_file("x" * 300)],
        [of_kind(tarfile.SYMTYPE, "link", "/etc"), a_file("link/outside")],
        [of_kind(tarfile.SYMTYPE, "link", "..")],
        [of_kind(tarfile.LNKTYPE, "link", "/etc/passwd")],
        [a_file("a"), of_kind(tarfile.LNKTYPE, "link", "a")],
        [of_kind(tarfile.FIFOTYPE, "pipe")],
        [of_kind(tarfile.CHRTYPE, "device")],
        [of_kind(tarfile.BLKTYPE, "device")],
        [of_kind(tarfile.DIRTYPE, "../outside")],
        [a_file("a"), a_file("a")],
        [a_file("a"), a_file("a/b")],
        [of_kind(tarfile.DIRTYPE, "a"), a_file("a")],
        [a_file("a"), of_kind(tarfile.DIRTYPE, "a")],
    ],
    ids=lambda members: "-".join(f"{info.name[:20]!a}" for info, _ in members),
)
def test_what_leads_elsewhere_or_is_no_plain_file_is_refused(
    tmp_path: Path, members: list[Member]
) -> None:
    archive = archive_of(tmp_path / "hostile.tar.xz", *members)
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    with pytest.raises(ResultRefusedError, match=r"hostile\.tar\.xz") as raised:
        unpack(archive, folder)
    assert "\n" not in str(raised.value)
    outside = [path for path in tmp_path.rglob("*") if folder not in path.parents]
    assert sorted(outside) == sorted([archive, folder, folder.parent])
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_modes_and_owners_of_an_archive_are_not_taken_over(tmp_path: Path) -> None:
    info, data = a_file("program")
    info.mode, info.uid = 0o6777, 12345
    unpack(archive_of(tmp_path / "a.tar.xz", (info, data)), tmp_path / "out")
    status = (tmp_path / "out" / "program").stat()
    assert not status.st_mode & 0o7111
    assert status.st_uid != 12345


WHOLE = ARCHIVES[0].read_bytes()
HALF = len(WHOLE) // 2


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", WHOLE[:HALF], WHOLE[:HALF] + b"flipped" + WHOLE[HALF + 7 :]],
    ids=["empty", "text", "half", "flipped"],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "hostile.tar.xz"
    path.write_bytes(data)
    with pytest.raises(ResultRefusedError, match="cannot be unpacked") as raised:
        unpack(path, tmp_path / "out")
    assert "\n" not in str(raised.value)
