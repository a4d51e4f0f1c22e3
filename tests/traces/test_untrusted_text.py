"""No character of a name or a log hides, moves or turns what is shown, and none is lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.traces.untrusted_text import json_text, markdown, visible, visible_line

HOSTILE = [
    ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
    ("\x9b31m", r"\x9b31m"),
    ("safe\u202egnp.exe", r"safe\u202egnp.exe"),
    ("\u2066a\u2069\u200f", r"\u2066a\u2069\u200f"),
    ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
    ("line\u2028end\x85", r"line\u2028end\x85"),
    ("\ud800", r"\ud800"),
    ("\U000e0041", r"\U000e0041"),
    ("a\rb\x00\x7f", r"a\x0db\x00\x7f"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=[shown for _, shown in HOSTILE])
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_letters_of_any_language_stay_as_they_are() -> None:
    text = "größe 核函数 ядро נגן 😀 µs ≤ →"
    assert visible(text) == text
    assert visible("a\n\tb") == "a\n\tb"
    assert visible_line("a\n\tb") == "a\\n\\tb"


@given(st.text())
def test_only_characters_that_can_be_seen_are_left(text: str) -> None:
    assert visible_line(text).isprintable()
    assert visible(text).replace("\n", "").replace("\t", "").isprintable()
    assert visible(visible(text)) == visible(text)


@given(st.text())
def test_json_with_escapes_says_the_same(text: str) -> None:
    written = json_text(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert written.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "a | b",
        "**bold** _x_ `code` # title",
        "&lt;script&gt;",
        "https://example.org",
        "www.example.org",
        "$x$ ~~gone~~ !",
    ],
)
def test_markdown_reads_nothing_as_markup(text: str) -> None:
    escaped = markdown(text)
    for sign in "`*[]<>|&#$~":
        assert escaped.count(sign) == escaped.count(f"\\{sign}"), sign
    assert "://" not in escaped.replace("\\://", "")
    assert "www." not in escaped


def test_markdown_is_one_line() -> None:
    assert markdown("a\n| b\n# c") == "a\\\\n\\| b\\\\n\\# c"
