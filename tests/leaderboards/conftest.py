"""Fixtures for the leaderboards: where the golden data lies, and an empty index."""

from pathlib import Path

import pytest

from tests.leaderboards.index import Index

_REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def golden() -> Path:
    """Expected values made by the public index's own code, beside the repository."""
    # A git worktree may lie one folder deeper than the repository.
    for parent in (_REPOSITORY.parent, _REPOSITORY.parent.parent):
        folder = parent / "shared" / "corpus" / "golden"
        if folder.is_dir():
            return folder
    pytest.skip(f"no golden data: {_REPOSITORY.parent / 'shared'} is absent")


@pytest.fixture
def index() -> Index:
    """An index without rows."""
    return Index()
