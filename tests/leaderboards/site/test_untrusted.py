"""Texts of a dataset are shown as they are written, and are never markup."""

import json
import re
from pathlib import Path

import pytest

from assets.leaderboards.site.rendering import embedded_json, script_json, web_address
from tests.leaderboards.site.sites import HOSTILE_AUTHOR, MARKUP, Page, Site, toy_dataset

_HANDLER = re.compile(r"on[a-z]+\Z")


def test_no_text_of_a_dataset_becomes_an_element(hostile_site: Site) -> None:
    assert len(hostile_site.pages()) > 15
    for path in hostile_site.pages():
        for tag, attributes in Page(path).elements:
            assert tag != "img", path
            assert not [name for name in attributes if _HANDLER.match(name)], (path, attributes)
            if tag == "script":
                assert attributes.get("src", "").endswith("site.js") or attributes == {
                    "type": "application/json",
                    "id": "comparison-data",
                }


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("operations/[0-9a-f]*.html", "description"),
        ("authors/*-????????.html", "author"),
        ("quarantine/index.html", "unknown solution"),
        ("gpus/index.html", "device"),
    ],
)
def test_markup_is_shown_as_text(hostile_site: Site, pattern: str, words: str) -> None:
    shown = hostile_site.only(pattern).text
    expected = HOSTILE_AUTHOR if words == "author" else MARKUP
    assert expected in shown, words


def test_sources_and_logs_are_shown_as_text(hostile_site: Site) -> None:
    texts = [Page(path).text for path in hostile_site.root.glob("artifacts/*.html")]
    assert sum(f"# {MARKUP}" in text for text in texts) == 1
    assert sum(f"Traceback: {MARKUP}" in text for text in texts) == 1


def test_scripts_of_data_hold_no_markup(hostile_site: Site) -> None:
    scripts = list(hostile_site.root.glob("data/*.js"))
    assert scripts
    for path in scripts:
        assert not re.search("[<>&]", path.read_text()), path


def test_no_address_holds_a_text_of_the_dataset(hostile_site: Site) -> None:
    for path in hostile_site.root.rglob("*"):
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", path.name), path


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"a": f"{MARKUP}\u2028 & <!--"}
    assert not re.search("[<>&\u2028]", str(embedded_json(value)))
    assert json.loads(script_json(value)) == value


@pytest.mark.parametrize(
    "text", ["javascript:alert(1)", "data:text/html,x", "//evil.example", "http://[", "", None]
)
def test_only_addresses_of_the_web_become_links(text: str | None) -> None:
    assert web_address(text) is None
    assert web_address("https://example.org/a") == "https://example.org/a"


def test_a_source_without_a_licence_is_not_shown(tmp_path: Path) -> None:
    site = Site.of(toy_dataset(tmp_path / "dataset", {"unlicensed": 0.01}), tmp_path)
    assert not list(site.root.glob("artifacts/*"))
    assert "no licence was concluded" in site.only("runs/[0-9a-f]*.html").text
    assert site.broken_links() == []
