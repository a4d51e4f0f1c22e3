"""Cut a file into its documents, whatever form the file has.

JSON Lines, one JSON object, a JSON array, objects written one after the other with indentation,
CRLF, byte order marks, blank lines, and files that end too early: each good document comes out
with the line it starts on, each bad stretch comes out as `Malformed`, and neither stops the rest.
What a document means is not looked at.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Struct

_OPEN, _CLOSE = b"{}"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Files that were written one after the other bring their byte order marks along.
_BLANK_BYTES = b" \t\r\n"
_BLANK = re.compile("[ \t\r\n\ufeff]*")
_BEGIN_OF_LINE = re.compile("^([ \t\ufeff]*)[{\\[]", re.MULTILINE)
_NEXT_BYTE = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*([^ \t\r\n\xef]?)")
_decoder = json.JSONDecoder()

EXCERPT_CHARACTERS = 200
NESTED_TOO_DEEPLY = "no JSON: nested too deeply"


class RawDocument(Struct, frozen=True, gc=False):
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
    line = 0
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        line += 1
        document = data[position:end]
        is_object = data[position] == _OPEN and data[end - 1] == _CLOSE
        if not is_object:
            document = document.strip(_BLANK_BYTES)
            if document.startswith(_BYTE_ORDER_MARK):
                document = document[len(_BYTE_ORDER_MARK) :].lstrip(_BLANK_BYTES)
            is_object = document[:1] == b"{" and document[-1:] == b"}"
        if is_object and not _goes_on(data, end):
            yield RawDocument(line, document)
        elif document:
            # Not one document a line from here on.
            yield from _Scanner(data[position:].decode("utf-8", "surrogateescape"), line).scan()
            return
        position = end + 1


def cut_again(document: RawDocument) -> list[RawDocument | Malformed]:
    """What a line holds that was taken for one document but is no JSON.

    Files that lack their last newline, written one after the other, have two documents in a line.
    """
    text = document.data.decode("utf-8", "surrogateescape")
    return list(_Scanner(text, document.line).scan())


def _goes_on(data: bytes, end_of_line: int) -> bool:
    """Whether the value of a line that ends with `}` may go on in the next one."""
    if end_of_line + 1 >= len(data) or data[end_of_line + 1] == _OPEN:
        return False
    match = _NEXT_BYTE.match(data, end_of_line)
    return match is not None and match[1] in (b",", b"}")


class _Scanner:
    """Finds the values of a text by parsing it; the elements of an array count as values."""

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text
        self._line, self._counted = first_line, 0

    def scan(self) -> Iterator[RawDocument | Malformed]:
        text = self._text
        position = self._skip_blank(0)
        array_line: int | None = None
        while position < len(text):
            if array_line is None and text[position] == "[":
                array_line = self._line_at(position)
                position = self._skip_blank(position + 1)
                continue
            if array_line is not None and text[position] == "]":
                array_line = None
                position = self._skip_blank(position + 1)
                continue
            line = self._line_at(position)
            try:
                # A ValueError that is no JSONDecodeError: an integer of thousands of digits.
                _, end = _decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                yield Malformed(line, _message(error), _excerpt(text, position))
                position = self._resume_after(position)
            else:
                yield RawDocument(line, text[position:end].encode("utf-8", "surrogateescape"))
                position = self._skip_blank(end)
                # Outside an array a comma is a mistake that costs nothing.
                if text[position : position + 1] == ",":
                    position = self._skip_blank(position + 1)
        if array_line is not None:
            yield Malformed(
                array_line, "no JSON: the file ends before the array that begins here does", "["
            )

    def _skip_blank(self, position: int) -> int:
        match = _BLANK.match(self._text, position)
        return match.end() if match else position

    def _resume_after(self, position: int) -> int:
        """Where the next value may begin: a line that is not indented more than the bad one.

        Lines that are indented more belong to the bad value, if that is one at all.
        """
        text = self._text
        begin_of_line = text.rfind("\n", 0, position) + 1
        indentation = position - begin_of_line
        if text[position] not in "{[" or text[begin_of_line:position].strip(" \t\ufeff"):
            indentation = len(text)
        end_of_line = text.find("\n", position)
        if end_of_line < 0:
            return len(text)
        for match in _BEGIN_OF_LINE.finditer(text, end_of_line + 1):
            if len(match[1]) <= indentation:
                return match.end() - 1
        return len(text)

    def _line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line


def _message(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return NESTED_TOO_DEEPLY
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg}"
    return "no JSON that can be kept: an integer of thousands of digits"


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
        return f"{_message(error)} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return _message(error)
    return None
