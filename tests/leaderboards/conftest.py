"""Fixtures of the leaderboards' tests."""

import pytest

from tests.leaderboards.index import Index


@pytest.fixture
def index() -> Index:
    """An index without rows."""
    return Index()
