import io
import os
import stat
import tarfile
import zipfile

import pytest

from assets.traces.errors import DatasetError
from assets.traces.pull import pull
from assets.traces.snapshot import ProblemReason
from tests.traces.test_directory import FILES, POINTER, write

SUFFIXES = [".tar.gz", ".tgz", ".zip"]


@pytest.fixture
def read(store):
    def read_it(location, revision=None, authors=None, **options):
        return pull(str(location), revision=revision, authors=authors, store=store, **options)

    return read_it


def pack(path, files, around=""):
    """Write an archive of files, in the order given, as often as they are given."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files:
                archive.writestr(around + name, data)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for name, data in files:
                info = tarfile.TarInfo(around + name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture(params=SUFFIXES)
def packed(request, tmp_path):
    def pack_it(files, around=""):
        return pack(tmp_path / f"data{request.param}", list(files), around)

    return pack_it


def test_an_archive_makes_the_same_snapshot_as_its_directory(packed, read, tmp_path):
    directory = read(write(tmp_path / "data"), name="own/data")
    archive = read(packed(FILES.items()), name="own/data")
    assert archive.snapshot_id == directory.snapshot_id
    assert archive.problems == ()


def test_an_archive_that_says_nothing_has_a_name_of_its_own(packed, read):
    archive = packed(FILES.items())
    assert read(archive).dataset == read(archive).dataset
    assert read(archive).dataset.startswith("local/data.")
    assert read(archive).url is None


def test_one_folder_around_everything_is_looked_through(packed, read):
    around = read(packed([*FILES.items(), ("README.md", b"")], around="flashinfer-trace-1.0/"))
    assert [file.path for file in around.files] == sorted(FILES)


def test_a_folder_of_the_layout_is_never_taken_for_one_around_it(packed, read):
    snapshot = read(packed([("definitions/gemm/d.json", b"{}")]))
    assert [file.path for file in snapshot.files] == ["definitions/gemm/d.json"]


def test_dataset_json_in_an_archive_names_the_dataset(packed, read):
    files = [*FILES.items(), ("dataset.json", b'{"id": "own/data"}')]
    snapshot = read(packed(files, around="x/"), revision="d" * 40)
    assert (snapshot.dataset, snapshot.revision) == ("own/data", "d" * 40)
    assert len(snapshot.files) == len(FILES)


def test_an_authors_filter_and_tensors_work_as_for_directories(packed, read):
    archive = packed([*FILES.items(), ("blob/t.safetensors", b"tensor")])
    assert "traces/ann/gemm/d.jsonl" not in {f.path for f in read(archive, authors=["bob"]).files}
    assert "blob/t.safetensors" in {f.path for f in read(archive, with_tensors=True).files}
    with pytest.raises(DatasetError, match="authors are ann, bob"):
        read(archive, authors=["eve"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_odd_members_are_problems_and_nothing_is_written_outside(packed, read, tmp_path):
    odd = [
        ("../../evil.json", b"{}"),
        ("/absolute/evil.json", b"{}"),
        ("a/../b.json", b"{}"),
        ("twice.json", b"1"),
        ("twice.json", b"2"),
        ("both.json", b"{}"),
        ("both.json/inner.json", b"{}"),
        ("pointer.json", POINTER),
    ]
    before = {path for path in tmp_path.parent.rglob("*") if "store" not in path.parts}
    archive = packed([*FILES.items(), *odd])
    snapshot = read(archive)
    reasons = {problem.path: problem.reason for problem in snapshot.problems}
    assert reasons == {
        "../../evil.json": ProblemReason.UNSAFE_PATH,
        "/absolute/evil.json": ProblemReason.UNSAFE_PATH,
        "a/../b.json": ProblemReason.UNSAFE_PATH,
        "twice.json": ProblemReason.DUPLICATE_PATH,
        "both.json": ProblemReason.DUPLICATE_PATH,
        "pointer.json": ProblemReason.LFS_POINTER,
    }
    assert {file.path for file in snapshot.files} == {*FILES, "both.json/inner.json"}
    after = {path for path in tmp_path.parent.rglob("*") if "store" not in path.parts}
    assert after - before == {archive}


def test_links_and_devices_in_a_tar_are_problems(read, tmp_path):
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(write(tmp_path / "data"), arcname=".")
        for name, kind in [
            ("soft.json", tarfile.SYMTYPE),
            ("hard.json", tarfile.LNKTYPE),
            ("device.json", tarfile.CHRTYPE),
        ]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    snapshot = read(tmp_path / "data.tar.gz")
    assert {problem.path: problem.reason.value for problem in snapshot.problems} == {
        "soft.json": "LINK",
        "hard.json": "LINK",
        "device.json": "NOT_A_FILE",
    }
    assert len(snapshot.files) == len(FILES)


def test_a_link_in_a_zip_is_a_problem(read, tmp_path):
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        info = zipfile.ZipInfo("link.json")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
        archive.writestr("a.json", "{}")
    (problem,) = read(tmp_path / "data.zip").problems
    assert (problem.path, problem.reason) == ("link.json", ProblemReason.LINK)


def test_a_bomb_is_refused(packed, read, monkeypatch):
    archive = packed([("a.json", b"0" * 5_000_000), ("b.json", b"{}")])
    monkeypatch.setattr("assets.traces.archive.MAX_TOTAL_BYTES", 1_000_000)
    with pytest.raises(DatasetError, match="unpacks to more than 1000000 bytes"):
        read(archive)


def test_a_member_over_the_size_limit_is_a_problem_and_is_not_read(packed, read, monkeypatch):
    archive = packed([("a.json", b"0" * 5_000_000), ("b.json", b"{}")])
    monkeypatch.setattr("assets.traces.intake.MAX_DOCUMENT_BYTES", 1000)
    monkeypatch.setattr("assets.traces.archive.MAX_DOCUMENT_BYTES", 1000)
    snapshot = read(archive)
    assert [problem.reason for problem in snapshot.problems] == [ProblemReason.TOO_LARGE]
    assert [file.path for file in snapshot.files] == ["b.json"]


def test_too_many_members_are_refused(packed, read, monkeypatch):
    monkeypatch.setattr("assets.traces.archive.MAX_MEMBERS", 3)
    with pytest.raises(DatasetError, match="more than 3 members"):
        read(packed(FILES.items()))


def test_a_tar_header_that_claims_a_huge_name_is_refused(read, tmp_path, monkeypatch):
    monkeypatch.setattr("assets.traces.archive.MAX_DOCUMENT_BYTES", 1000)
    info = tarfile.TarInfo("x" * 5000 + ".json")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(info)
    with pytest.raises(DatasetError, match="has a header or file of"):
        read(tmp_path / "data.tar.gz")


@pytest.mark.parametrize("keep", [0, 1, 10, 100, 0.5, 0.9])
def test_a_truncated_archive_is_an_error_in_one_line(packed, read, keep):
    archive = packed([(f"{n}.json", os.urandom(500)) for n in range(20)])
    data = archive.read_bytes()
    archive.write_bytes(data[: keep if isinstance(keep, int) else int(len(data) * keep)])
    with pytest.raises(DatasetError, match=r"data\.\S+: not a readable archive[^\n]*$"):
        read(archive)


def test_a_damaged_archive_is_an_error_or_leaves_its_files_whole(packed, read, store):
    files = {f"{n}.json": os.urandom(300) for n in range(20)}
    archive = packed(files.items())
    data = bytearray(archive.read_bytes())
    for position in range(0, len(data), 97):
        data[position] ^= 0xFF
        archive.write_bytes(data)
        data[position] ^= 0xFF
        try:
            snapshot = read(archive)
        except DatasetError:
            continue
        for file in snapshot.files:
            assert store.get(file.digest) == files.get(file.path, store.get(file.digest))


def test_an_encrypted_zip_member_is_an_error(read, tmp_path):
    archive = pack(tmp_path / "data.zip", [("a.json", b"{}")])
    data = bytearray(archive.read_bytes())
    data[6] |= 1
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    archive.write_bytes(data)
    with pytest.raises(DatasetError, match=r"not a readable archive .*encrypted"):
        read(archive)


def test_another_kind_of_file_is_an_error(read, tmp_path):
    (tmp_path / "data.rar").write_bytes(b"x")
    with pytest.raises(DatasetError, match=r"not a directory, \.tar\.gz, \.tgz or \.zip"):
        read(tmp_path / "data.rar")
