"""Fixtures of this room: a store, a hub on loopback, and pulls from it."""

import pytest

from assets.traces.hub import pull_hub
from assets.traces.hub_location import parse_hub_location
from assets.traces.raw_store import RawStore
from tests.traces.hub_dataset import FILES, LARGE, LOCATION, settings
from tests.traces.hub_server import LoopbackHub


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
