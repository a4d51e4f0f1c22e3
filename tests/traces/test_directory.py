import os
import shutil
import subprocess
from pathlib import Path

import pytest

from assets.traces.errors import DatasetError
from assets.traces.git_objects import blob_id
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore, digest_of
from assets.traces.snapshot import ProblemReason

FILES = {
    "definitions/gemm/d.json": b'{"name": "d"}',
    "workloads/gemm/d.jsonl": b"{}\n",
    "solutions/ann/gemm/d/s.json": b"{}",
    "traces/ann/gemm/d.jsonl": b"{}\n{}\n",
    "traces/bob/gemm/d.jsonl": b"{}\n",
    "old/loose.json": b"[]",
}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12345\n"


def write(root: Path, files=FILES) -> Path:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    done = subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(root: Path) -> str:
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "data", "--date=2026-01-02T03:04:05Z")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def read(store):
    def pull_it(location, revision=None, authors=None, **options):
        return pull(str(location), revision=revision, authors=authors, store=store, **options)

    return pull_it


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "data")


def test_every_document_is_listed_by_digest_and_its_bytes_are_stored(root, read, store):
    snapshot = read(root)
    assert {file.path: file.digest for file in snapshot.files} == {
        path: digest_of(data) for path, data in FILES.items()
    }
    for file in snapshot.files:
        assert store.get(file.digest) == FILES[file.path]
        assert store.digest_of_blob(file.blob_id) == file.digest
        assert (file.blob_id, file.size_bytes) == (
            blob_id(FILES[file.path]),
            len(FILES[file.path]),
        )
    assert snapshot.problems == ()


def test_the_same_files_make_the_same_snapshot_anywhere(root, read, tmp_path):
    copy = write(tmp_path / "copy")
    assert read(root, name="own/data").snapshot_id == read(copy, name="own/data").snapshot_id


def test_large_files_read_in_pieces_are_the_same_files(root, read, store, monkeypatch):
    (root / "traces/ann/gemm/large.jsonl").write_bytes(b'{"a": "' + os.urandom(300_000) + b'"}\n')
    whole = read(root)
    for kept in store.root.glob("[0-9a-f][0-9a-f]/*.zst"):
        kept.unlink()
    monkeypatch.setattr("assets.traces.directory._LARGE_BYTES", 1)
    monkeypatch.setattr("assets.traces.raw_store._COPY_CHUNK_BYTES", 1000)
    assert read(root) == whole
    for file in whole.files:
        assert store.get(file.digest) == (root / file.path).read_bytes()


def test_a_large_file_that_grows_while_it_is_read_is_an_error(root, read, monkeypatch):
    class Growing(RawStore):
        def put_file(self, path, blob_id=None):
            with path.open("ab") as stream:
                stream.write(b"{}\n")
            return super().put_file(path, blob_id)

    monkeypatch.setattr("assets.traces.directory._LARGE_BYTES", 1)
    store = Growing(root.parent / "growing")
    with pytest.raises(DatasetError, match="changed while it was read"):
        pull(str(root), revision=None, authors=None, store=store)


def test_a_plain_directory_has_the_git_tree_hash_as_revision(root, read):
    revision = read(root).revision
    commit(root)
    assert revision == git(root, "rev-parse", "HEAD^{tree}")


def test_a_given_revision_is_kept_and_must_be_a_commit_id(root, read):
    assert read(root, revision="b" * 40).revision == "b" * 40
    for bad in ("main", "b" * 39, "B" * 40, ""):
        with pytest.raises(DatasetError, match="40 lower-case hex digits"):
            read(root, revision=bad)


def test_a_clean_clone_has_its_commit_and_commit_time(root, read):
    (root / "README.md").write_text("a file that is no document may change")
    sha = commit(root)
    (root / "README.md").write_text("changed")
    snapshot = read(root)
    assert snapshot.revision == sha
    seconds = int(git(root, "log", "-1", "--format=%ct"))
    assert snapshot.revision_at is not None
    assert snapshot.revision_at.timestamp() == seconds


@pytest.mark.parametrize("change", ["edit", "add", "remove"])
def test_a_clone_with_changed_documents_has_the_tree_hash(root, read, change):
    sha = commit(root)
    if change == "remove":
        (root / "old/loose.json").unlink()
    else:
        (root / ("old/loose.json" if change == "edit" else "old/new.json")).write_bytes(b"[1]")
    snapshot = read(root)
    git(root, "add", "-A")
    assert snapshot.revision == git(root, "write-tree")
    assert snapshot.revision != sha
    assert snapshot.revision_at is None


def test_an_ignored_document_makes_a_clone_unclean(root, read):
    (root / ".gitignore").write_text("old/ignored.json")
    sha = commit(root)
    assert read(root).revision == sha
    (root / "old/ignored.json").write_bytes(b"{}")
    assert read(root).revision != sha


def test_large_file_content_in_place_of_its_pointer_is_still_the_commit(root, read):
    content = b"x" * 5000
    sha256 = digest_of(content).removeprefix("sha256:").encode()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + sha256
    (root / "old/large.json").write_bytes(pointer + b"\nsize 5000\n")
    sha = commit(root)
    (root / "old/large.json").write_bytes(content)
    assert read(root).revision == sha


def test_what_a_repository_configures_is_never_run(root, read, tmp_path):
    commit(root)
    trap = tmp_path / "trap"
    git(root, "config", "core.fsmonitor", f"touch {trap}; false")
    git(root, "config", "filter.evil.clean", f"touch {trap}; cat")
    (root / ".gitattributes").write_text("* filter=evil\n")
    os.utime(root / "old/loose.json", (1, 1))
    read(root)
    assert not trap.exists()


def test_a_plain_directory_has_a_name_of_its_own_that_stays(root, read, tmp_path):
    first = read(root)
    assert first.dataset.startswith(f"local/{root.name}-")
    assert first.url is None
    write(root, {"definitions/gemm/new.json": b"{}"})
    assert read(root).dataset == first.dataset
    copy = tmp_path / "elsewhere" / root.name
    shutil.copytree(root, copy)
    assert read(copy).dataset != first.dataset


def test_a_clone_without_an_origin_is_named_by_its_first_commit_wherever_it_lies(
    root, read, tmp_path
):
    commit(root)
    first = read(root)
    assert first.dataset.startswith("local/git-")
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    write(copy, {"definitions/gemm/new.json": b"{}"})
    commit(copy)
    assert read(copy).dataset == first.dataset


@pytest.mark.parametrize(
    ("name", "dataset", "url"),
    [
        ("own/data", "own/data", None),
        ("hf://datasets/own/data", "own/data", "https://huggingface.co/datasets/own/data"),
    ],
)
def test_a_stated_name_holds_whatever_the_copy_says(root, store, name, dataset, url):
    (root / "dataset.json").write_text('{"id": "other/data"}')
    snapshot = pull(str(root), revision=None, authors=None, store=store, name=name)
    assert (snapshot.dataset, snapshot.url) == (dataset, url)


@pytest.mark.parametrize("name", ["", "a b", "own/", "/data", "https://example.org/x", "hf://x"])
def test_a_stated_name_that_is_none_is_refused(root, store, name):
    with pytest.raises(DatasetError, match="write OWNER/NAME"):
        pull(str(root), revision=None, authors=None, store=store, name=name)


def test_dataset_json_names_the_dataset_and_is_no_document(root, read):
    (root / "dataset.json").write_text('{"id": "own/data", "title": "Own", "url": "https://o.org"}')
    snapshot = read(root)
    assert (snapshot.dataset, snapshot.url) == ("own/data", "https://o.org")
    assert len(snapshot.files) == len(FILES)


@pytest.mark.parametrize("text", ["", "[]", '{"id": ""}', '{"id": 3}'])
def test_a_bad_dataset_json_is_an_error_that_shows_a_good_one(root, read, text):
    (root / "dataset.json").write_text(text)
    with pytest.raises(DatasetError, match=r'dataset\.json: .*expected \{"id"'):
        read(root)


@pytest.mark.parametrize(
    ("remote", "dataset", "url"),
    [
        (
            "https://huggingface.co/datasets/own/data",
            "own/data",
            "https://huggingface.co/datasets/own/data",
        ),
        (
            "https://user:secret@huggingface.co/datasets/own/data.git",
            "own/data",
            "https://huggingface.co/datasets/own/data",
        ),
        (
            "git@hf.co:datasets/own/data",
            "own/data",
            "https://huggingface.co/datasets/own/data",
        ),
        (
            "https://me:secret@github.com/ann/flashinfer-trace.git",
            "github.com/ann/flashinfer-trace",
            "https://github.com/ann/flashinfer-trace",
        ),
        (
            "git@github.com:ann/flashinfer-trace.git",
            "github.com/ann/flashinfer-trace",
            "https://github.com/ann/flashinfer-trace",
        ),
        (
            "ssh://git@git.example.org:2222/ann/x/",
            "git.example.org/ann/x",
            "https://git.example.org/ann/x",
        ),
        ("http://localhost:3000/ann/x", "localhost:3000/ann/x", "http://localhost:3000/ann/x"),
        (
            "https://example.org/datasets/flashinfer-ai/flashinfer-trace",
            "example.org/datasets/flashinfer-ai/flashinfer-trace",
            "https://example.org/datasets/flashinfer-ai/flashinfer-trace",
        ),
        (
            "https://evil.org/https://huggingface.co/datasets/own/data?token=secret",
            "evil.org/https/huggingface.co/datasets/own/data",
            "https://evil.org/https/huggingface.co/datasets/own/data",
        ),
    ],
)
def test_a_clone_is_named_by_its_origin_and_keeps_no_password(root, read, remote, dataset, url):
    commit(root)
    git(root, "remote", "add", "origin", remote)
    snapshot = read(root)
    assert (snapshot.dataset, snapshot.url) == (dataset, url)
    assert "secret" not in snapshot.model_dump_json()


@pytest.mark.parametrize("remote", ["../bare", "/srv/ann/bare.git", "file:///srv/ann/bare", "::"])
def test_a_clone_of_a_folder_is_named_by_that_folder_without_its_place(root, read, remote):
    commit(root)
    git(root, "remote", "add", "origin", remote)
    first = read(root)
    assert first.dataset.startswith("local/")
    assert "srv" not in first.dataset
    git(root, "remote", "set-url", "origin", "/srv/bob/bare.git")
    assert read(root).dataset != first.dataset


def test_a_hub_cache_entry_knows_dataset_and_commit_and_its_links_are_read(tmp_path, read):
    repository = tmp_path / "datasets--own--data"
    entry = repository / "snapshots" / ("c" * 40)
    write(repository / "blobs", {"b1": b"{}", "b2": b"[]"})
    (entry / "definitions").mkdir(parents=True)
    (entry / "definitions/a.json").symlink_to("../../../blobs/b1")
    (entry / "definitions/b.json").symlink_to("/etc/hostname")
    snapshot = read(entry)
    assert (snapshot.dataset, snapshot.revision) == ("own/data", "c" * 40)
    assert [file.path for file in snapshot.files] == ["definitions/a.json"]
    assert [problem.reason for problem in snapshot.problems] == [ProblemReason.LINK]


def test_an_authors_filter_reads_only_their_folders(root, read, store):
    snapshot = read(root, authors=["bob"])
    assert [file.path for file in snapshot.files] == [
        "definitions/gemm/d.json",
        "old/loose.json",
        "traces/bob/gemm/d.jsonl",
        "workloads/gemm/d.jsonl",
    ]
    assert snapshot.authors == ("bob",)
    assert not store.has(digest_of(FILES["traces/ann/gemm/d.jsonl"]))


def test_an_unknown_author_and_an_empty_filter_are_errors(root, read):
    with pytest.raises(DatasetError, match="no author 'eve' here; authors are ann, bob"):
        read(root, authors=["eve"])
    with pytest.raises(DatasetError, match="at least one author"):
        read(root, authors=[])


def test_a_clean_clone_keeps_its_commit_under_an_authors_filter(root, read):
    sha = commit(root)
    assert read(root, authors=["bob"]).revision == sha


def test_links_pointers_odd_names_and_pipes_are_problems_and_the_rest_is_read(root, read):
    (root / "old/link.json").symlink_to("loose.json")
    (root / "old/linked").symlink_to("../definitions")
    (root / "old/pointer.json").write_bytes(POINTER)
    (root / "old/new\nline.json").write_bytes(b"{}")
    Path(os.fsdecode(os.fsencode(root / "old") + b"/\xff.json")).write_bytes(b"{}")
    os.mkfifo(root / "old/pipe.json")
    snapshot = read(root)
    assert len(snapshot.files) == len(FILES)
    assert {(problem.path, problem.reason.value) for problem in snapshot.problems} == {
        ("old/link.json", "LINK"),
        ("old/linked", "LINK"),
        ("old/pointer.json", "LFS_POINTER"),
        (r"old/new\nline.json", "UNSAFE_PATH"),
        (r"old/\udcff.json", "UNSAFE_PATH"),
        ("old/pipe.json", "NOT_A_FILE"),
    }
    assert type(snapshot).model_validate_json(snapshot.model_dump_json()) == snapshot


def test_a_file_over_the_size_limit_is_a_problem(root, read, monkeypatch):
    monkeypatch.setattr("assets.traces.intake.MAX_DOCUMENT_BYTES", 4)
    reasons = {problem.path: problem.reason for problem in read(root).problems}
    assert reasons["definitions/gemm/d.json"] is ProblemReason.TOO_LARGE


def test_tensors_are_read_only_when_asked_for_and_do_not_move_the_revision(root, read):
    write(root, {"blob/workloads/gemm/t.safetensors": b"tensor"})
    without, with_tensors = read(root), read(root, with_tensors=True)
    assert {f.path for f in with_tensors.files} - {f.path for f in without.files} == {
        "blob/workloads/gemm/t.safetensors"
    }
    assert with_tensors.revision == without.revision


@pytest.mark.parametrize("location", ["/nowhere/at/all", "nowhere"])
def test_a_missing_directory_is_an_error_in_one_line(read, location):
    with pytest.raises(DatasetError, match=r"^\S+: no such dataset[^\n]*$"):
        read(location)


def test_a_directory_without_documents_is_an_error(tmp_path, read):
    write(tmp_path / "empty", {"README.md": b"x"})
    with pytest.raises(DatasetError, match="no dataset files; expected"):
        read(tmp_path / "empty")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_an_error_that_names_it(root, read):
    (root / "old/loose.json").chmod(0)
    with pytest.raises(DatasetError, match=r"old/loose\.json: cannot be read"):
        read(root)


def test_progress_ends_with_every_file_done(root, store):
    seen = []
    pull(str(root), revision=None, authors=None, store=store, progress=seen.append)
    assert [state.files_done for state in seen] == list(range(1, len(FILES) + 1))
    assert seen[-1].files_total == len(FILES)
    assert seen[-1].size_bytes_done == sum(map(len, FILES.values()))


def test_a_clone_with_sha256_objects_has_the_tree_hash(root, read):
    plain = read(root).revision
    git(root, "init", "-q", "--object-format=sha256")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "data")
    assert read(root).revision == plain
