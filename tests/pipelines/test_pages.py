"""The documentation shows what the commands really print."""

import difflib
from pathlib import Path

import pytest

from tests.pages import PAGES, refreshed, runner


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Each page as it is now; one after the other, because they share a warehouse."""
    run = runner(tmp_path_factory.mktemp("pages"))
    return {page: refreshed(page.read_text(), run) for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_its_commands_print(page: Path, printed: dict[Path, str]) -> None:
    written, actual = page.read_text(), printed[page]
    difference = difflib.unified_diff(written.splitlines(), actual.splitlines(), lineterm="")
    assert actual == written, "run `python -m tests.pages`\n" + "\n".join(difference)
