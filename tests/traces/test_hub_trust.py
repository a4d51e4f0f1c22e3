import json
import time

import pytest

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.snapshot import ProblemReason
from tests.traces.hub_dataset import (
    FILES,
    WANTED,
    contents,
    settings,
)
from tests.traces.hub_server import DATASET, TOKEN, pointer_of


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
        entry | {"path": "blob/huge.safetensors", "size": 10**12},
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


@pytest.mark.parametrize("target", ["http://[", "http://[::1", "http://a:b:c/"])
def test_a_redirect_to_what_is_no_address_is_refused(hub, read, target):
    path = "traces/ann/gemm/d.jsonl"
    hub.fail(path, *[lambda answer: answer.send(302, b"", {"Location": target})] * 9)
    with pytest.raises(DatasetError, match="redirects to"):
        read()


def test_json_that_is_nested_too_deep_is_no_answer(hub, read):
    hub.fail("/tree/", *[lambda answer: answer.send(200, b"[" * 200_000)] * 9)
    with pytest.raises(TransientDatasetError, match="no JSON"):
        read()


def test_a_redirect_with_an_endless_body_is_not_read(hub, read, store):
    path = "traces/ann/gemm/d.jsonl"
    url = f"/datasets/{DATASET}/resolve/{hub.refs['main']}/{path}"

    def redirect_and_talk_on(answer):
        answer.handler.start(307, 10**12, {"Location": url})
        answer.handler.wfile.write(b"x" * 100_000)
        answer.handler.wfile.flush()
        time.sleep(0.05)
        answer.hang_up()

    hub.fail(path, redirect_and_talk_on)
    assert contents(read(), store) == WANTED


def test_an_unforeseen_error_in_a_thread_is_not_swallowed(read, store, monkeypatch):
    def put(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(store, "put", put)
    with pytest.raises(ZeroDivisionError):
        read()
