from datetime import UTC, datetime

import pytest

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.hub import head_revision
from assets.traces.pull import missing_files, pull
from assets.traces.raw_store import RawStore, digest_of
from assets.traces.snapshot import load_snapshot, save_snapshot
from tests.traces.hub_dataset import FILES, LARGE, LOCATION, WANTED, contents, settings
from tests.traces.hub_server import DATASET, TOKEN


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
    with pytest.raises(DatasetError, match="never pulled completely"):
        read(offline=True)
    pinned = f"{LOCATION}@{hub.refs['main']}"
    with pytest.raises(DatasetError, match=r"3 of 6 files .* were never pulled"):
        read(pinned, offline=True)


def test_a_saved_snapshot_and_the_store_replay_without_the_hub(hub, read, store, tmp_path):
    save_snapshot(read(), tmp_path / "snapshot.json")
    hub.close()
    again = RawStore(store.root)
    snapshot = load_snapshot(tmp_path / "snapshot.json")
    assert missing_files(snapshot, again) == []
    assert contents(snapshot, again) == WANTED


def test_offline_everything_is_what_was_there_when_everything_was_pulled(hub, read):
    everything = read()
    hub.commit(FILES | {"traces/ann/gemm/new.jsonl": b"{}"})
    bob = read(authors=["bob"])
    assert bob.revision != everything.revision
    assert read(offline=True) == everything
    assert read(offline=True, authors=["bob"]) == bob
    assert read(offline=True, authors=["ann"]).revision == everything.revision
