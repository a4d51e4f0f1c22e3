"""Sites that several tests only look at."""

from pathlib import Path

import pytest

from tests.leaderboards.site.sites import Site, hostile_dataset

_SAMPLE = Path(__file__).parents[3] / "assets" / "traces" / "sample"


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of a dataset with markup in every text."""
    place = tmp_path_factory.mktemp("hostile")
    return Site.of(hostile_dataset(place / "dataset"), place)


@pytest.fixture(scope="session")
def sample_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of the bundled sample."""
    return Site.of(_SAMPLE, tmp_path_factory.mktemp("sample"))
