"""The documentation shows what the commands really print."""

import difflib
from pathlib import Path

import pytest

from tests.pages import PAGES, refreshed, runner


@pytest.fixture(scope="module")
def page_runner(tmp_path_factory: pytest.TempPathFactory):
    return runner(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_its_commands_print(page: Path, page_runner) -> None:
    written = page.read_text()
    actual = refreshed(written, page_runner)
    difference = difflib.unified_diff(written.splitlines(), actual.splitlines(), lineterm="")
    assert actual == written, "run `python -m tests.pages`\n" + "\n".join(difference)
