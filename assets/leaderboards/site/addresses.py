"""Where a page lies in the site: by digest or by name, never by position, so that links last.

Addresses are relative to the site's folder and use `/`. Nothing in them comes from a dataset as it
is: digests are hexadecimal, and names are reduced to a-z, 0-9 and `-` with a digest behind them.
"""

import hashlib
import re

from assets.answers.lookup import Kind

_DIGITS = 32
_SLUG_LENGTH = 48
_HEXADECIMAL = re.compile(r"[0-9a-f]{32,64}")

HOME = "index.html"
OPERATIONS = "operations/index.html"
RUNS = "runs/index.html"
IMPLEMENTATIONS = "implementations/index.html"
AUTHORS = "authors/index.html"
GPUS = "gpus/index.html"
QUARANTINE = "quarantine/index.html"
METHODOLOGY = "methodology/index.html"
SEARCH = "search.html"


def identifier(digest: str) -> str:
    """The first 128 bits of a digest: what a page is named by."""
    digits = digest.removeprefix("sha256:").lower()
    if not _HEXADECIMAL.fullmatch(digits):
        digits = hashlib.sha256(digest.encode()).hexdigest()
    return digits[:_DIGITS]


def named(name: str) -> str:
    """A name that may be anything, as part of an address."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_SLUG_LENGTH].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{words}-{digest}" if words else digest


def operation(digest: str) -> str:
    """The page of an operation."""
    return f"operations/{identifier(digest)}.html"


def group(strict_group: str) -> str:
    """The page of a comparison group."""
    return f"groups/{identifier(strict_group)}.html"


def run(digest: str) -> str:
    """The page of a run."""
    return f"runs/{identifier(digest)}.html"


def implementation(digest: str) -> str:
    """The page of an implementation."""
    return f"implementations/{identifier(digest)}.html"


def artifact(digest: str) -> str:
    """The page that shows a source or a log."""
    return f"artifacts/{identifier(digest)}.html"


def author(name: str) -> str:
    """The page of an author directory."""
    return f"authors/{named(name)}.html"


def gpu(product: str) -> str:
    """The part of the GPUs page that is about one device."""
    return f"{GPUS}#{named(product)}"


def beside(page: str, suffix: str) -> str:
    """A data file beside a page: `.json`, `-records.csv`."""
    return page.removesuffix(".html") + suffix


def of_kind(kind: Kind, digest: str) -> str | None:
    """The page of a thing that can be looked up; None for kinds without a page of their own."""
    makers = {Kind.RUN: run, Kind.IMPLEMENTATION: implementation, Kind.OPERATION: operation}
    maker = makers.get(kind)
    return maker(digest) if maker else None
