"""Pulls that are killed with SIGKILL at random moments, against a real server.

One process imports everything once and forks a child for each pull, so that fifty kills take
seconds; the children share nothing but the store's folder.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from assets.traces.raw_store import RawStore, digest_of
from tests.traces.hub_server import DATASET, LoopbackHub, made_files

KILLS = 50
LARGE = "traces/author1/op1/large.jsonl"

FORKER = """
import json, os, sys
import assets.traces.hub
from pathlib import Path
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore

assets.traces.hub.MEMORY_LIMIT_BYTES = 100_000
for line in sys.stdin:
    store = Path(line.strip())
    child = os.fork()
    if child:
        print(child, flush=True)
        sys.stdin.readline()  # a child that ended keeps its number until it is waited for
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    snapshot = pull(LOCATION, revision=None, authors=None, store=RawStore(store))
    (store / "done.json.tmp").write_text(snapshot.model_dump_json())
    (store / "done.json.tmp").rename(store / "done.json")
    os._exit(0)
""".replace("LOCATION", repr(f"hf://datasets/{DATASET}"))


class Puller:
    def __init__(self, hub, tmp_path):
        environment = os.environ | {
            "HF_ENDPOINT": hub.endpoint,
            "KERNELINDEX_HUB_HOSTS": hub.storage,
        }
        self.errors = tmp_path / "errors.txt"
        self.process = subprocess.Popen(
            [sys.executable, "-c", FORKER],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors.open("w"),
            text=True,
        )

    def start(self, root):
        self.process.stdin.write(f"{root}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def wait(self):
        self.process.stdin.write("wait\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ended\n", self.errors.read_text()

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def hub():
    server = LoopbackHub(page_size=100, delay_s=0.002)
    server.large = {LARGE}
    files = made_files(300, 1000) | {LARGE: random.Random(2).randbytes(2_000_000)}
    server.commit(files)
    yield server
    server.close()


@pytest.fixture
def puller(hub, tmp_path):
    process = Puller(hub, tmp_path)
    yield process
    process.close()


def test_fifty_kills_leave_nothing_half_or_twice_and_the_next_pull_completes(hub, puller, tmp_path):
    files = next(iter(hub.commits.values())).files
    source = random.Random(3)
    stores, interrupted = [tmp_path / "store-0"], 0
    for _ in range(KILLS):
        root = stores[-1]
        child = puller.start(root)
        time.sleep(source.uniform(0.0, 0.35))
        os.kill(child, signal.SIGKILL)
        puller.wait()
        store = RawStore(root)
        stored = list(store.digests())
        for digest in stored:
            assert digest_of(store.get(digest)) == digest
        assert len(stored) == len(set(stored))
        if (root / "done.json").exists():  # it was quicker than the kill: begin anew
            stores.append(tmp_path / f"store-{len(stores)}")
        else:
            interrupted += 1
    assert interrupted >= KILLS // 2
    puller.start(stores[-1])
    puller.wait()
    for root in stores:
        snapshot = json.loads((root / "done.json").read_text())
        digests = {file["path"]: file["digest"] for file in snapshot["files"]}
        assert digests == {path: digest_of(data) for path, data in files.items()}
        assert sorted(RawStore(root).digests()) == sorted(set(digests.values()))
        leftovers = [path for path in (root / "partial").glob("*") if path.is_file()]
        assert leftovers == []
    asked = Counter(hub.paths("/resolve/", host="hub"))
    again = sum(times - len(stores) for times in asked.values())
    # A kill loses at most what the eight threads were fetching.
    assert again <= 8 * interrupted
    assert len(asked) == len(files)


def test_two_pulls_at_once_into_one_store_agree(hub, puller, tmp_path):
    other = Puller(hub, tmp_path)
    try:
        for process in (puller, other):
            process.start(tmp_path / "store")
        for process in (puller, other):
            process.wait()
    finally:
        other.close()
    if not (tmp_path / "store" / "done.json").exists():  # both met in the large file
        puller.start(tmp_path / "store")
        puller.wait()
    snapshot = json.loads((tmp_path / "store" / "done.json").read_text())
    store = RawStore(tmp_path / "store")
    assert sorted(store.digests()) == sorted({file["digest"] for file in snapshot["files"]})
    for digest in store.digests():
        assert digest_of(store.get(digest)) == digest
