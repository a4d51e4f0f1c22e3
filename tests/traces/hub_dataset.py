"""The dataset that the loopback hub serves, and how tests look at what was pulled of it."""

from assets.traces.hub_settings import HubSettings
from tests.traces.hub_server import DATASET

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
