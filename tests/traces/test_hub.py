import json
import threading
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import pairwise

import pytest

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.hub import head_revision, pull_hub
from assets.traces.hub_http import CHUNK_BYTES
from assets.traces.hub_location import parse_hub_location
from assets.traces.hub_settings import HubSettings
from assets.traces.pull import missing_files, pull
from assets.traces.raw_store import RawStore, digest_of
from assets.traces.snapshot import ProblemReason, load_snapshot, save_snapshot
from tests.traces.hub_server import DATASET, TOKEN, LoopbackHub, pointer_of

LOCATION = f"hf://datasets/{DATASET}"
LARGE = "traces/ann/gemm/large.jsonl"
FILES = {
    "README.md": b"no document",
    "definitions/gemm/d.json": b'{"name": "d"}',
    "workloads/gemm/d.jsonl": b"{}\n",
    "solutions/ann/gemm/d/s.json": b'{"s": 1}',
    "traces/ann/gemm/d.jsonl": b"{}\n{}\n",
    "traces/bob/gemm/d e\xe9%.jsonl": b'{"odd": "name"}\n',
    LARGE: b'{"large": true}\n' * 5000,
    "blob/workloads/gemm/t.safetensors": b"tensor",
}
WANTED = {
    path: data for path, data in FILES.items() if path.split("/")[0] not in ("README.md", "blob")
}


@pytest.fixture
def hub():
    server = LoopbackHub(page_size=4)
    server.large = {LARGE, "blob/workloads/gemm/t.safetensors"}
    server.commit(FILES)
    yield server
    server.close()


@pytest.fixture
def store(tmp_path):
    return RawStore(tmp_path / "store")


@pytest.fixture
def read(hub, store):
    def read_it(
        location=LOCATION,
        *,
        revision=None,
        authors=None,
        with_tensors=False,
        into=None,
        progress=None,
        **changes,
    ):
        return pull_hub(
            parse_hub_location(location, revision),
            authors=authors,
            store=into or store,
            settings=settings(hub, **changes),
            with_tensors=with_tensors,
            progress=progress,
        )

    return read_it


def settings(hub, **changes):
    fast = {
        "endpoint": hub.endpoint,
        "allowed_hosts": (hub.storage,),
        "read_timeout_s": 5.0,
        "retries": 2,
        "backoff_base_s": 0.001,
        "rate_limit_wait_max_s": 3.0,
    }
    return HubSettings(**(fast | changes))


def contents(snapshot, store):
    return {file.path: store.get(file.digest) for file in snapshot.files}


def ranges_of(hub, part):
    return [request.headers.get("Range") for request in hub.requests if part in request.path]


def received(sent_bytes):
    """How much of what was sent before a connection broke is kept: whole chunks."""
    return sent_bytes - sent_bytes % CHUNK_BYTES


# What is pulled


def test_the_wanted_files_of_the_branch_are_stored_and_pinned_to_its_commit(hub, read, store):
    snapshot = read()
    assert contents(snapshot, store) == WANTED
    assert snapshot.revision == hub.refs["main"]
    assert snapshot.revision_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert snapshot.dataset == DATASET
    assert snapshot.url == f"https://huggingface.co/datasets/{DATASET}"
    assert snapshot.location == LOCATION
    assert snapshot.problems == ()
    by_path = {file.path: file for file in snapshot.files}
    assert by_path[LARGE].blob_id == digest_of(FILES[LARGE]).removeprefix("sha256:")


def test_pull_honours_the_environment(hub, store, monkeypatch):
    hub.private = True
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint + "/")
    monkeypatch.setenv("HF_TOKEN", f" {TOKEN}\n")
    monkeypatch.setenv("KERNELINDEX_HUB_HOSTS", hub.storage)
    snapshot = pull(LOCATION, revision=None, authors=None, store=store)
    assert contents(snapshot, store) == WANTED
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    asked = len(hub.requests)
    assert pull(LOCATION, revision=None, authors=None, store=store) == snapshot
    assert len(hub.requests) == asked


def test_tensors_are_pulled_only_when_asked_for(read, store):
    path = "blob/workloads/gemm/t.safetensors"
    assert contents(read(with_tensors=True), store) == WANTED | {path: FILES[path]}


def test_only_the_authors_asked_for_are_downloaded(hub, read):
    snapshot = read(authors=["bob"])
    assert {file.path for file in snapshot.files} == {
        "definitions/gemm/d.json",
        "workloads/gemm/d.jsonl",
        "traces/bob/gemm/d e\xe9%.jsonl",
    }
    assert not hub.paths("/ann/")
    with pytest.raises(DatasetError, match="no author 'eve' here; authors are ann, bob"):
        read(authors=["eve"])


def test_a_revision_may_be_a_branch_a_commit_or_a_reference_with_slashes(hub, read):
    first = hub.refs["main"]
    second = hub.commit({"definitions/a.json": b"{}"}, ref="refs/pr/1")
    assert read(f"{LOCATION}@refs/pr/1").revision == second
    assert read(f"{LOCATION}@refs%2Fpr%2F1").revision == second
    assert read(revision=first).revision == first
    assert hub.paths("/revision/refs%2Fpr%2F1")


def test_a_commit_asked_for_by_its_sha_is_not_resolved(hub, read):
    read(f"{LOCATION}@{hub.refs['main']}")
    assert not hub.paths("/revision/")


def test_without_history_the_branch_says_when_it_changed(hub, read):
    hub.has_history = False
    assert read().revision_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_branch_that_moves_between_two_pages_does_not_mix_revisions(hub, read, store):
    first = hub.refs["main"]

    def move(request):
        if "/tree/" in request.path and "cursor" not in request.path:
            hub.commit({"definitions/other.json": b"{}"})

    hub.before = move
    snapshot = read()
    assert snapshot.revision == first != hub.refs["main"]
    assert contents(snapshot, store) == WANTED


def test_links_to_the_next_page_never_lead_to_another_host(hub, read, store):
    hub.link_host = "http://198.51.100.1"
    assert contents(read(token=TOKEN), store) == WANTED


def test_progress_ends_with_all_files_and_bytes(read):
    seen = []
    read(progress=seen.append)
    assert seen[0].phase == "list"
    assert (seen[-1].files_done, seen[-1].files_total) == (len(WANTED), len(WANTED))
    assert seen[-1].size_bytes_done == seen[-1].size_bytes_total == sum(map(len, WANTED.values()))
    seen.clear()
    read(progress=seen.append)
    assert seen[-1].files_known == len(WANTED)


# Incremental


def test_an_unchanged_dataset_costs_one_conditional_request(hub, read):
    first = read()
    hub.requests.clear()
    assert read() == first
    (request,) = hub.requests
    assert "/revision/main" in request.path
    assert request.headers["If-None-Match"].startswith("W/")


def test_a_new_revision_fetches_only_blobs_never_seen(hub, read, store):
    read()
    files = FILES | {
        "definitions/gemm/d.json": b'{"name": "changed"}',
        "solutions/ann/gemm/d/copy.json": FILES["solutions/ann/gemm/d/s.json"],
        "traces/ann/gemm/renamed.jsonl": FILES[LARGE],
    }
    del files[LARGE]
    hub.large.add("traces/ann/gemm/renamed.jsonl")
    hub.commit(files)
    hub.requests.clear()
    snapshot = read()
    assert hub.paths("/resolve/") == [
        f"/datasets/{DATASET}/resolve/{snapshot.revision}/definitions/gemm/d.json"
    ]
    assert contents(snapshot, store)["traces/ann/gemm/renamed.jsonl"] == FILES[LARGE]


def test_equal_files_of_one_revision_are_fetched_once(hub, read):
    hub.commit({f"definitions/{n}.json": b"same" for n in range(5)})
    assert len(read().files) == 5
    assert len(hub.paths("/resolve/")) == 1


def test_a_listing_cut_short_by_a_fault_is_listed_again_and_files_are_kept(hub, read):
    hub.fail("gemm/d.jsonl", *[lambda answer: answer.send(500)] * 9)
    with pytest.raises(TransientDatasetError):
        read(parallel_downloads=1)
    hub._faults.clear()
    fetched = len(hub.paths("/resolve/"))
    trees = len(hub.paths("/tree/"))
    assert len(read().files) == len(WANTED)
    assert len(hub.paths("/tree/")) == trees
    assert len(hub.paths("/resolve/")) < fetched + len(WANTED)


def test_head_revision_asks_once_and_conditionally(hub, store):
    ask = {"store": store, "settings": settings(hub)}
    first = head_revision(LOCATION, **ask)
    assert first == head_revision(LOCATION, **ask) == hub.refs["main"]
    assert len(hub.requests) == 2
    assert "If-None-Match" in hub.requests[1].headers
    hub.commit({"definitions/a.json": b"{}"})
    assert head_revision(LOCATION, **ask) == hub.refs["main"] != first
    with pytest.raises(TransientDatasetError, match="HF_HUB_OFFLINE"):
        head_revision(LOCATION, store=store, settings=settings(hub, offline=True))


# Offline and replay


def test_offline_takes_the_last_complete_pull_without_a_request(hub, read, store):
    first = read()
    hub.commit({"definitions/new.json": b"{}"})
    head_revision(LOCATION, store=store, settings=settings(hub))
    hub.requests.clear()
    assert read(offline=True) == first
    assert hub.requests == []


def test_offline_before_any_pull_says_what_to_do(hub, read):
    with pytest.raises(DatasetError, match="never pulled completely and HF_HUB_OFFLINE is set"):
        read(offline=True)
    read(authors=["bob"])
    with pytest.raises(DatasetError, match=r"3 of 6 files .* were never pulled"):
        read(offline=True)


def test_a_saved_snapshot_and_the_store_replay_without_the_hub(hub, read, store, tmp_path):
    save_snapshot(read(), tmp_path / "snapshot.json")
    hub.close()
    again = RawStore(store.root)
    snapshot = load_snapshot(tmp_path / "snapshot.json")
    assert missing_files(snapshot, again) == []
    assert contents(snapshot, again) == WANTED


# Faults that pass


@pytest.mark.parametrize(
    "fault",
    [
        lambda answer: answer.send(500, b"oops"),
        lambda answer: answer.send(503, b"<html>down</html>"),
        lambda answer: answer.hang_up(),
        lambda answer: answer.break_off_after(0),
        lambda answer: answer.break_off_after(3),
        lambda answer: answer.send(200, b""),
        lambda answer: answer.send(200, b"<!DOCTYPE html><p>please log in"),
        lambda answer: answer.send(200, answer.content[:-1] + b"?"),
        lambda answer: answer.send(200, answer.content + b"more"),
        lambda answer: answer.send(206, answer.content[1:], {"Content-Range": "bytes 1-5/6"}),
    ],
    ids=[
        "500",
        "503",
        "hang-up",
        "no-body",
        "truncated",
        "empty",
        "html",
        "wrong",
        "long",
        "range",
    ],
)
@pytest.mark.parametrize("path", ["traces/ann/gemm/d.jsonl", LARGE])
def test_a_fault_that_passes_is_retried_and_its_bytes_are_never_stored(
    hub, read, store, fault, path
):
    part = path if path != LARGE else digest_of(FILES[LARGE]).removeprefix("sha256:")
    hub.fail(part, fault, fault)
    assert contents(read(), store) == WANTED
    assert set(store.digests()) == {digest_of(data) for data in WANTED.values()}


@pytest.mark.parametrize("action", ["/revision/", "/tree/", "/commits/"])
@pytest.mark.parametrize(
    "fault",
    [
        lambda answer: answer.send(502, b"bad gateway"),
        lambda answer: answer.hang_up(),
        lambda answer: answer.send(200, b"<html>maintenance</html>"),
        lambda answer: answer.send(200, b'[{"type": "fi'),
        lambda answer: answer.send(200, b"null"),
    ],
    ids=["502", "hang-up", "html", "truncated", "null"],
)
def test_listings_are_asked_for_again_after_a_passing_fault(hub, read, store, action, fault):
    hub.fail(action, fault, fault)
    assert contents(read(), store) == WANTED


def test_a_broken_download_continues_where_it_stopped(hub, read, store):
    oid = digest_of(FILES[LARGE]).removeprefix("sha256:")
    hub.fail(oid, lambda answer: answer.break_off_after(50_000))
    assert contents(read(), store) == WANTED
    assert ranges_of(hub, oid) == [None, f"bytes={received(50_000)}-"]


def test_steady_progress_is_never_given_up(hub, read, store):
    oid = digest_of(FILES[LARGE]).removeprefix("sha256:")

    def send_a_little_more(answer):
        start = int(answer.handler.headers.get("Range", "bytes=0-")[6:-1])
        rest = answer.content[start:]
        answer.handler.start(
            206 if start else 200,
            len(rest),
            {"Content-Range": f"bytes {start}-{len(answer.content) - 1}/{len(answer.content)}"},
        )
        answer.handler.wfile.write(rest[:20_000])
        answer.handler.wfile.flush()
        answer.hang_up()

    hub.fail(oid, *[send_a_little_more] * 4)
    assert contents(read(retries=1), store) == WANTED


def test_a_large_file_is_resumed_by_the_next_process(hub, read, store, monkeypatch):
    monkeypatch.setattr("assets.traces.hub.MEMORY_LIMIT_BYTES", 1000)
    oid = digest_of(FILES[LARGE]).removeprefix("sha256:")
    hub.fail(oid, lambda answer: answer.break_off_after(60_000), lambda answer: answer.send(500))
    with pytest.raises(TransientDatasetError):
        read(retries=1, parallel_downloads=1)
    assert not store.has(digest_of(FILES[LARGE]))
    hub.requests.clear()
    assert contents(read(), store) == WANTED
    assert ranges_of(hub, oid) == [f"bytes={received(60_000)}-"]
    assert list((store.root / "partial").iterdir()) == []


def test_a_damaged_partial_file_is_dropped_and_fetched_whole(hub, read, store, monkeypatch):
    monkeypatch.setattr("assets.traces.hub.MEMORY_LIMIT_BYTES", 1000)
    oid = digest_of(FILES[LARGE]).removeprefix("sha256:")
    for garbage in (b"x" * 500, b"x" * len(FILES[LARGE]), b"x" * 2 * len(FILES[LARGE])):
        other = RawStore(store.root / str(len(garbage)))
        (other.root / "partial").mkdir()
        (other.root / "partial" / f"{oid}.part").write_bytes(garbage)
        assert contents(read(into=other), other) == WANTED


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "1"},
        {"RateLimit": '"resolvers";r=0;t=1', "RateLimit-Policy": '"fixed window";"resolvers";q=3'},
        {"Retry-After": "date"},
    ],
    ids=["seconds", "ratelimit", "date"],
)
def test_a_rate_limit_is_waited_for_by_every_thread(hub, read, store, headers):
    def refuse(answer):
        sent = dict(headers)
        if sent.get("Retry-After") == "date":
            at = datetime.fromtimestamp(time.time() + 2, UTC)
            sent["Retry-After"] = format_datetime(at, usegmt=True)
        answer.send(429, b"", sent)

    moments = []
    hub.before = lambda request: moments.append((time.monotonic(), request.path))
    hub.fail("definitions/gemm/d.json", refuse, refuse)
    assert contents(read(retries=0, parallel_downloads=2, rate_limit_wait_max_s=9), store) == WANTED
    refused = [at for at, path in moments if path.endswith("definitions/gemm/d.json")]
    assert all(later - earlier > 0.9 for earlier, later in pairwise(refused))


def test_a_rate_limit_that_asks_for_too_long_is_an_error_for_later(hub, read):
    hub.fail("/revision/", lambda answer: answer.send(429, b"", {"Retry-After": "3600"}))
    with pytest.raises(TransientDatasetError, match="answers 429; it asks to wait 3600 s"):
        read()


def test_a_hub_that_is_down_is_an_error_for_later(hub, read):
    hub.close()
    with pytest.raises(
        TransientDatasetError, match=r"cannot be reached .*refused.* \(3 attempts\)"
    ):
        read()


def test_a_slow_answer_runs_into_the_time_limit(hub, read):
    hub.fail("traces/ann/gemm/d.jsonl", *[lambda answer: answer.trickle(1, 0.15)] * 9)
    started = time.monotonic()
    with pytest.raises(TransientDatasetError, match="time limit"):
        read(file_time_limit_s=0.4)
    assert time.monotonic() - started < 3


def test_a_silent_server_runs_into_the_read_timeout(hub, read):
    quiet = threading.Event()
    hub.fail("/revision/", *[lambda answer: quiet.wait(2)] * 3)
    started = time.monotonic()
    with pytest.raises(TransientDatasetError, match="timed out"):
        read(read_timeout_s=0.1)
    assert time.monotonic() - started < 2
    quiet.set()


# Faults that last


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (
            lambda a: a.send(200, a.content[:-1] + b"?"),
            DatasetError,
            "content with the id [0-9a-f]{40} came in place of [0-9a-f]{40}; nothing was stored",
        ),
        (lambda a: a.send(200, b"x"), DatasetError, "1 bytes came in place of 6"),
        (lambda a: a.send(200, pointer_of(a.content)), DatasetError, "a Git LFS pointer came"),
        (lambda a: a.send(200, b""), TransientDatasetError, "an empty answer came"),
        (lambda a: a.send(200, b" <HTML>"), TransientDatasetError, "a web page came"),
        (lambda a: a.send(404), DatasetError, "the hub answers 404; check the dataset's name"),
        (lambda a: a.send(500), TransientDatasetError, r"the hub answers 500 \(3 attempts\)"),
        (lambda a: a.send(418), DatasetError, "the hub answers 418"),
    ],
)
def test_a_lasting_fault_is_told_in_one_line_and_nothing_wrong_is_stored(
    hub, read, store, fault, error, message
):
    hub.fail("traces/ann/gemm/d.jsonl", *[fault] * 20)
    with pytest.raises(error, match=message) as raised:
        read()
    assert type(raised.value) is error
    assert "\n" not in raised.value.message
    assert set(store.digests()) <= {digest_of(data) for data in WANTED.values()}
    assert not store.has(digest_of(FILES["traces/ann/gemm/d.jsonl"]))


def test_bad_data_in_one_file_lets_the_others_be_fetched_first(hub, read, store):
    hub.fail("definitions/gemm/d.json", *[lambda a: a.send(200, b"?" * len(a.content))] * 9)
    with pytest.raises(DatasetError):
        read()
    assert len(list(store.digests())) == len(WANTED) - 1


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("hf://datasets/own/other", "answers 404; check the dataset's name"),
        (f"{LOCATION}@nowhere", "answers 404"),
        (f"{LOCATION}@{'0' * 40}", "answers 404"),
    ],
)
def test_what_does_not_exist_is_an_error_that_no_retry_mends(hub, read, location, message):
    with pytest.raises(DatasetError, match=message) as raised:
        read(location)
    assert type(raised.value) is DatasetError


def test_a_dataset_without_documents_is_an_error(hub, read):
    hub.commit({"README.md": b"x"})
    with pytest.raises(DatasetError, match="no dataset files at"):
        read()


# Trust


def test_the_token_goes_to_the_endpoint_and_never_to_another_host(hub, read, store):
    hub.private = True
    assert contents(read(token=TOKEN), store) == WANTED
    seen = {request.host: "Authorization" in request.headers for request in hub.requests}
    assert seen == {"hub": True, "storage": False}


def test_a_missing_token_is_asked_for_and_a_token_is_never_shown(hub, read):
    hub.private = True
    with pytest.raises(DatasetError, match=r"401 \(Invalid username or password\.\); set HF_TOKEN"):
        read()
    with pytest.raises(DatasetError) as raised:
        read(token="hf_wrong")
    assert "hf_wrong" not in str(raised.value)
    assert "hf_wrong" not in repr(settings(hub, token="hf_wrong"))


def test_a_netrc_file_adds_no_credentials(hub, read, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    read()
    assert not any("Authorization" in request.headers for request in hub.requests)


@pytest.mark.parametrize(
    "storage",
    [
        "http://localhost:1",
        "https://evil.example.org",
        "http://user:password@{storage}",
        "ftp://{storage}",
        "http://127.0.0.1.example.org",
    ],
)
def test_a_redirect_to_a_host_that_is_not_allowed_is_refused(hub, read, storage):
    hub.storage_url = storage.format(storage=hub.storage)
    with pytest.raises(DatasetError, match=r"redirects to .* not an allowed host") as raised:
        read(token=TOKEN)
    assert "signature" not in raised.value.message
    assert "password" not in raised.value.message
    assert hub.paths(host="storage") == []


def test_redirects_that_never_end_are_refused(hub, read):
    path = "traces/ann/gemm/d.jsonl"
    url = f"/datasets/{DATASET}/resolve/{hub.refs['main']}/{path}"
    hub.fail(path, *[lambda answer: answer.send(307, b"", {"Location": url})] * 50)
    with pytest.raises(DatasetError, match="more than 5 redirects"):
        read()


def test_hostile_entries_of_a_listing_become_problems(hub, read, store):
    entry = {"type": "file", "oid": "a" * 40, "size": 1}
    hub.commits[hub.refs["main"]].extra_entries = [
        entry | {"path": "../outside.json"},
        entry | {"path": "/etc/cron.json"},
        entry | {"path": "definitions/a\\b.json"},
        entry | {"path": "definitions/a\nb.json"},
        entry | {"path": "definitions/link.json", "type": "symlink"},
        entry | {"path": "definitions/module.json", "type": "commit"},
        entry | {"path": "definitions/huge.json", "size": 10**12},
        entry | {"path": "definitions/noid.json", "oid": "../../x"},
        entry | {"path": "definitions/gemm/d.json"},
    ]
    snapshot = read()
    assert {problem.path: problem.reason for problem in snapshot.problems} == {
        "../outside.json": ProblemReason.UNSAFE_PATH,
        "/etc/cron.json": ProblemReason.UNSAFE_PATH,
        "definitions/a\\b.json": ProblemReason.UNSAFE_PATH,
        "definitions/a\\nb.json": ProblemReason.UNSAFE_PATH,
        "definitions/link.json": ProblemReason.LINK,
        "definitions/module.json": ProblemReason.NOT_A_FILE,
        "definitions/huge.json": ProblemReason.TOO_LARGE,
        "definitions/noid.json": ProblemReason.NOT_A_FILE,
        "definitions/gemm/d.json": ProblemReason.DUPLICATE_PATH,
    }
    expected = dict(WANTED)
    del expected["definitions/gemm/d.json"]
    assert contents(snapshot, store) == expected


@pytest.mark.parametrize("page", [{"error": "x"}, [{"path": 3}], [[]], "text"])
def test_a_listing_of_another_shape_is_an_error(hub, read, page):
    hub.fail("/tree/", lambda answer: answer.send(200, json.dumps(page).encode()))
    with pytest.raises(DatasetError, match="not a file listing"):
        read()


@pytest.mark.parametrize("sha", ["main", "", None, 3, "A" * 40, "../x"])
def test_an_answer_without_a_commit_sha_is_an_error(hub, read, sha):
    hub.fail("/revision/", lambda answer: answer.send(200, json.dumps({"sha": sha}).encode()))
    with pytest.raises(DatasetError, match="names no commit sha"):
        read()


def test_a_listing_of_another_commit_is_an_error(hub, read):
    hub.fail("/tree/", lambda a: a.send(200, b"[]", {"X-Repo-Commit": "b" * 40}))
    with pytest.raises(DatasetError, match=r"lists commit b+ instead"):
        read()


def test_pages_that_never_end_are_an_error(hub, read):
    link = {"Link": '<http://x/y?cursor=1>; rel="next"'}
    hub.fail("/tree/", *[lambda answer: answer.send(200, b"[]", link)] * 9)
    with pytest.raises(DatasetError, match="pages never end"):
        read()


def test_a_pointer_that_the_dataset_itself_holds_is_a_problem(hub, read):
    hub.commit(FILES | {"definitions/pointer.json": pointer_of(b"never uploaded")})
    (problem,) = read().problems
    assert (problem.path, problem.reason) == (
        "definitions/pointer.json",
        ProblemReason.LFS_POINTER,
    )
