"""Cut a file into its documents, whatever form the file has.

JSON Lines, one JSON object, a JSON array, objects written one after the other with indentation,
CRLF, a byte order mark, blank lines, and files that end too early: each good document comes out
with the line it starts on, each bad stretch comes out as `Malformed`, and neither stops the rest.
What a document means is not looked at.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(r"[ \t\r\n]*")
_RESUME = re.compile(r"^[{\[]", re.MULTILINE)
_decoder = json.JSONDecoder()

EXCERPT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class RawDocument:
    """The text of one JSON value and the 1-based line it starts on."""

    line: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Malformed:
    """A stretch of a file that is no JSON."""

    line: int
    message: str
    excerpt: str


def read_documents(data: bytes) -> Iterator[RawDocument | Malformed]:
    """The documents of one file, in order.

    A line that begins with `{` and ends with `}` is taken as a document without being parsed, so
    that a large file is parsed once and not twice: a reader may still find it malformed, and then
    asks `explain` for the message.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if data.lstrip()[:1] == b"[":
        yield from _scan(data, 0, 1, in_array=True)
        return
    line = 0
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        line += 1
        stripped = data[position:end].strip()
        if stripped[:1] == b"{" and stripped[-1:] == b"}":
            yield RawDocument(line, stripped)
        elif stripped:
            # Not one document a line from here on.
            yield from _scan(data, position, line, in_array=False)
            return
        position = end + 1


def _scan(
    data: bytes, offset: int, first_line: int, *, in_array: bool
) -> Iterator[RawDocument | Malformed]:
    text = data[offset:].decode("utf-8", "surrogateescape")
    counter = _LineCounter(text, first_line)
    position = _skip_blank(text, 0)
    if in_array:
        position = _skip_blank(text, position + 1)
    while position < len(text) and not (in_array and text[position] == "]"):
        line = counter.line_at(position)
        try:
            _, end = _decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError) as error:
            message = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            yield Malformed(line, f"no JSON: {message}", _excerpt(text, position))
            position = _resume_after(text, position)
        else:
            yield RawDocument(line, text[position:end].encode("utf-8", "surrogateescape"))
            position = _skip_separator(text, end) if in_array else _skip_blank(text, end)


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _skip_separator(text: str, position: int) -> int:
    position = _skip_blank(text, position)
    if text[position : position + 1] == ",":
        position = _skip_blank(text, position + 1)
    return position


def _resume_after(text: str, position: int) -> int:
    # The next line that begins a value in the first column; else nothing more can be told apart.
    end_of_line = text.find("\n", position)
    match = _RESUME.search(text, end_of_line + 1) if end_of_line >= 0 else None
    return match.start() if match else len(text)


class _LineCounter:
    def __init__(self, text: str, first_line: int) -> None:
        self._text, self._line, self._position = text, first_line, 0

    def line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line


def _excerpt(text: str, position: int) -> str:
    stretch = text[position : position + EXCERPT_CHARACTERS]
    return stretch.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def excerpt(data: bytes) -> str:
    """The beginning of a document, for a message."""
    return data[: EXCERPT_CHARACTERS * 4].decode("utf-8", "replace")[:EXCERPT_CHARACTERS]


def explain(data: bytes) -> str | None:
    """Why a document is no JSON; None if it is (to a parser that allows NaN and surrogates)."""
    try:
        json.loads(data)
    except UnicodeDecodeError as error:
        return f"no UTF-8: {error.reason} at byte {error.start}"
    except json.JSONDecodeError as error:
        return f"no JSON: {error.msg} at column {error.colno}"
    except RecursionError:
        return "no JSON: nested too deeply"
    return None
