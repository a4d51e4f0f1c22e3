"""Names and logs that others wrote, made fit to be shown: in a terminal, in Markdown, in JSON.

Such a text may hold escape sequences that move a terminal's cursor or set its title, and marks
that reverse the order of what follows. They are shown as escapes, so that nobody is misled and
nothing is hidden. What is stored, exported or hashed is never changed.
"""

import re

_LINES = "\n\t"
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()<>#|&!~$])")
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")


def visible(text: str) -> str:
    """A text in which every character can be seen; line ends and tabs stay as they are.

    `\\x1b` and its like become escapes: control characters, marks that turn the direction of
    writing, characters of no width, lone surrogates, whatever `str.isprintable` does not hold for.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _LINES else _escape(letter) for letter in text
    )


def visible_line(text: str) -> str:
    """As `visible`, in one line: line ends and tabs become escapes too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def markdown(text: str) -> str:
    """A text of which Markdown reads nothing as markup, in one line; fit for a table's cell."""
    plain = _PUNCTUATION.sub(r"\\\1", visible_line(text))
    return _AUTOLINK.sub(r"\1\\\2", plain)


def json_text(text: str) -> str:
    """JSON whose unseen characters are escapes within its strings; it says the same as before."""
    if text.isascii():  # JSON has the others of ASCII as escapes already, but for one
        return text.replace("\x7f", "\\u007f")
    return "".join(
        letter if letter.isprintable() or letter in _LINES else _json_escape(letter)
        for letter in text
    )


def _escape(letter: str) -> str:
    number = ord(letter)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
