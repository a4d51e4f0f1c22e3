"""Templates: compiled once, with escaping on, given addresses relative to the page."""

import json
from collections.abc import Mapping
from datetime import datetime
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from assets.answers.lookup import short
from assets.answers.units import count_text, latency_text, ratio_text, size_text, time_text
from assets.leaderboards.site import addresses

_PACKAGE = "assets.leaderboards.site"
# What stands where there is no value.
NONE = "\N{EN DASH}"
STYLE_SHEET = "style.css"
STATIC_FILES = (STYLE_SHEET, "site.js")

# Words that stand for what a code says where there is no room for the code.
_STATUS_WORDS = {"passed": "passed"}


class Renderer:
    """Turns a template and values into a page."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader(_PACKAGE),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals["at"] = addresses
        self._environment.filters.update(
            latency=latency_text,
            ratio=ratio_text,
            size=size_text,
            time=time_text,
            day=day_text,
            short=short,
            count=count_text,
            share=share_text,
            status=status_text,
            number=number_text,
            embedded=embedded_json,
            web=web_address,
        )

    def page(self, address: str, template: str, **values: Any) -> str:
        """A page that will lie at an address of the site."""
        up = "../" * address.count("/")

        def link(target: str) -> str:
            return up + target

        return self._environment.get_template(template).render(link=link, address=address, **values)


def static_file(name: str) -> str:
    """The style sheet or the script."""
    return resources.files(_PACKAGE).joinpath("static", name).read_text(encoding="utf-8")


def day_text(value: datetime | None) -> str:
    """`2026-11-30`; empty for none."""
    return "" if value is None else f"{value:%Y-%m-%d}"


def share_text(value: float | None) -> str:
    """`83%`; a dash for none. What is nearly all or nearly nothing is not called so."""
    if value is None:
        return NONE
    if 0 < value < 0.005:
        return "<1%"
    return ">99%" if 0.995 < value < 1 else f"{value:.0%}"


def status_text(value: str) -> str:
    """`runtime_error` as words."""
    return _STATUS_WORDS.get(value, value.replace("_", " "))


def number_text(value: float | None) -> str:
    """A number with its thousands set apart; a dash for none."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def web_address(value: object) -> str | None:
    """A link that leaves the site, if it is one to the web and nothing else."""
    text = str(value or "").strip()
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and parts.netloc else None


def embedded_json(value: object) -> Markup:
    """JSON for a `<script type="application/json">`: nothing in it can end the element."""
    return Markup(script_json(value))  # every character that HTML reads is escaped


def script_json(value: object) -> str:
    """JSON in which no character means anything to HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def pretty_json(value: Mapping[str, object]) -> str:
    """JSON for people, one value a line."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


def data_json(value: Mapping[str, object]) -> str:
    """JSON for programs, in one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
