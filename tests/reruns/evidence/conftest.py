"""A part of the shipped session, made once."""

import pytest

from tests.reruns.sessions import StoredSession, part_of_shipped


@pytest.fixture(scope="session")
def part(tmp_path_factory: pytest.TempPathFactory) -> StoredSession:
    """Four items of the shipped session; look, do not touch."""
    return part_of_shipped(tmp_path_factory.mktemp("part"))
