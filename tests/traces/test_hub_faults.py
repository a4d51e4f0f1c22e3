import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import pairwise

import pytest

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.raw_store import RawStore, digest_of
from tests.traces.hub_dataset import FILES, LARGE, LOCATION, WANTED, contents, ranges_of
from tests.traces.hub_server import pointer_of

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
    assert ranges_of(hub, oid) == [None, "bytes=50000-"]


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
    assert ranges_of(hub, oid) == ["bytes=60000-"]
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
    hub.fail("definitions/gemm/d.json", refuse)
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


@pytest.mark.parametrize("part", ["traces/ann/gemm/d.jsonl", "/tree/", "/revision/"])
@pytest.mark.parametrize(
    "beginning",
    [
        b"HTTP/1.1 2",
        b"HTTP/1.1 200 OK\r\nX-",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0",
    ],
    ids=["status", "header", "chunk-size"],
)
def test_a_byte_now_and_then_holds_no_request_past_its_time_limit(hub, read, part, beginning):
    def drip(answer):
        answer.handler.close_connection = True
        with suppress(OSError):  # the client has hung up
            answer.handler.wfile.write(beginning)
            for _ in range(100):
                answer.handler.wfile.write(b"0")
                answer.handler.wfile.flush()
                time.sleep(0.05)

    hub.fail(part, *[drip] * 9)
    started = time.monotonic()
    with pytest.raises(TransientDatasetError, match="time limit"):
        read(file_time_limit_s=0.4, answer_time_limit_s=0.4)
    assert time.monotonic() - started < 3


def test_a_whole_pull_has_a_time_limit(hub, read):
    hub.before = lambda request: time.sleep(0.2)
    started = time.monotonic()
    with pytest.raises(TransientDatasetError, match="time limit"):
        read(pull_time_limit_s=0.5, parallel_downloads=1)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    "asked",
    [
        {"Retry-After": "0"},
        {"Retry-After": "Fri, 02 Jan 1970 00:00:00 GMT"},
        {"RateLimit": '"resolvers";r=0;t=0'},
    ],
    ids=["zero", "a date that has passed", "ratelimit"],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_hub_that_asks_for_no_wait_is_not_asked_without_end(hub, read, asked, status):
    hub.fail("/revision/", *[lambda answer: answer.send(status, b"", asked)] * 200)
    with pytest.raises(TransientDatasetError, match=f"answers {status}"):
        read(backoff_base_s=0.01, backoff_max_s=0.2, rate_limit_wait_max_s=0.5)
    assert len(hub.requests) < 12


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


def test_one_refusal_makes_all_threads_pause(hub, read):
    hub.commit({f"definitions/{number}.json": str(number).encode() for number in range(60)})
    hub.delay_s = 0.01
    moments = []
    hub.before = lambda request: moments.append(time.monotonic())
    refused = []

    def refuse(answer):
        refused.append(time.monotonic())
        answer.send(429, b"", {"Retry-After": "1"})

    hub.fail("definitions/1.json", refuse)
    assert len(read(parallel_downloads=2).files) == 60
    paused = [at for at in moments if refused[0] + 0.3 < at < refused[0] + 0.9]
    after = [at for at in moments if at >= refused[0] + 0.9]
    assert paused == []
    assert len(after) > 10


def test_a_server_that_cannot_resume_sends_the_file_anew(hub, read, store):
    oid = digest_of(FILES[LARGE]).removeprefix("sha256:")
    hub.fail(
        oid,
        lambda answer: answer.break_off_after(50_000),
        lambda answer: answer.send(200, answer.content),
    )
    assert contents(read(), store) == WANTED
    assert len(hub.paths(oid)) == 2
