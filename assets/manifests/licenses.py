"""Which licence is concluded from what a source declares."""

import re

# What the datasets state of their contents; nothing is declared for any other.
DECLARED = {
    "flashinfer-ai/flashinfer-trace": "Apache-2.0",
    "kernelindex/sample": "Apache-2.0",
}

# Identifiers of the SPDX licence list that kernel sources carry.
_SPDX = {
    identifier.lower(): identifier
    for identifier in (
        "0BSD",
        "AGPL-3.0",
        "AGPL-3.0-only",
        "AGPL-3.0-or-later",
        "Apache-2.0",
        "Artistic-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSD-3-Clause-Clear",
        "BSL-1.0",
        "CC-BY-4.0",
        "CC-BY-SA-4.0",
        "CC0-1.0",
        "ECL-2.0",
        "EPL-2.0",
        "EUPL-1.2",
        "GPL-2.0",
        "GPL-2.0-only",
        "GPL-2.0-or-later",
        "GPL-3.0",
        "GPL-3.0-only",
        "GPL-3.0-or-later",
        "ISC",
        "LGPL-2.1",
        "LGPL-2.1-only",
        "LGPL-2.1-or-later",
        "LGPL-3.0",
        "LGPL-3.0-only",
        "LGPL-3.0-or-later",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "MS-PL",
        "NCSA",
        "PostgreSQL",
        "Python-2.0",
        "UPL-1.0",
        "Unlicense",
        "Zlib",
    )
}
_EXCEPTIONS = ("LLVM-exception",)
_REFERENCE = re.compile(r"LicenseRef-[A-Za-z0-9.-]+\Z")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_OPERATORS = frozenset({"OR", "AND", "WITH"})


def concluded_license(declared: str | None) -> str | None:
    """The SPDX expression that a declaration is; None where it is none that we know.

    A single identifier is known in any case; in an expression the public index, whose digests
    hold what is concluded, knows the exact spelling only. Nothing is guessed from free text.
    """
    expression = " ".join((declared or "").split())
    if expression.lower() in _SPDX:
        return _SPDX[expression.lower()]
    tokens = _TOKEN.findall(expression)
    return expression if all(map(_is_known, tokens)) and _alternates(tokens) else None


def _is_known(token: str) -> bool:
    return (
        token in _OPERATORS
        or token in ("(", ")", *_EXCEPTIONS)
        or _SPDX.get(token.lower()) == token
        or _REFERENCE.match(token) is not None
    )


def _alternates(tokens: list[str]) -> bool:
    """Whether licences and operators take turns and parentheses match."""
    depth, expects_license = 0, True
    for token in tokens:
        if token == "(":
            if not expects_license:
                return False
            depth += 1
        elif token == ")":
            depth -= 1
            if expects_license or depth < 0:
                return False
        elif (token in _OPERATORS) is expects_license:
            return False
        else:
            expects_license = not expects_license
    return depth == 0 and not expects_license
