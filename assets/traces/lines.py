"""Cut a file into its documents, whatever form the file has.

JSON Lines, one JSON object, a JSON array, objects written one after the other with indentation,
CRLF, byte order marks, blank lines, and files that end too early: each good document comes out
with the line it starts on, each bad stretch comes out as `Malformed`, and neither stops the rest.
What a document means is not looked at.

Text is untrusted, so time and memory are bounded whatever it says: a document has at most
`MOST_DOCUMENT_BYTES`, and of values that were begun and never end at most a few times the file is
parsed in vain.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Struct

_OPEN, _CLOSE = b"{}"
_ARRAY, _ARRAY_END = b"[]"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Files that were written one after the other bring their byte order marks along.
_BLANK_BYTES = b" \t\r\n"
_BLANK = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*")
_BEGIN_OF_LINE = re.compile(rb"^((?:[ \t]|\xef\xbb\xbf)*)[{\[]", re.MULTILINE)
_NEXT_BYTE = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*([^ \t\r\n\xef]?)")
_decoder = json.JSONDecoder()

EXCERPT_CHARACTERS = 200
NESTED_TOO_DEEPLY = "no JSON: nested too deeply"
MOST_DOCUMENT_BYTES = 3 * 1024**2
"""What a parser makes of a document takes up to 25 times its size."""
_TOO_LARGE = f"a document of more than {MOST_DOCUMENT_BYTES} bytes"
_GIVEN_UP = "no JSON, and too many values before it never end; the rest of the file was not read"

# A value is parsed in a piece of the text that grows until the value ends within it: to make a
# message, the parser counts the lines of all it was given.
_FIRST_PIECE_BYTES = 16 * 1024
# What fails this close to the end of a piece may be good with what follows: `-Infinit`, `\ud8`.
_CUT_CHARACTERS = 16
# What may be parsed in vain: the file so many times, and so much besides.
_VAIN_PASSES = 2
_VAIN_BYTES = 32 * 1024**2


class RawDocument(Struct, frozen=True, gc=False):
    """The text of one JSON value and the 1-based line it starts on."""

    line: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Malformed:
    """A stretch of a file that is no JSON, or is `too_large` to be looked at."""

    line: int
    message: str
    excerpt: str
    too_large: bool = False


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
        if end - position > MOST_DOCUMENT_BYTES:
            yield from _Scanner(data, position, line).scan()
            return
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
            yield from _Scanner(data, position, line).scan()
            return
        position = end + 1


def cut_again(document: RawDocument) -> list[RawDocument | Malformed]:
    """What a line holds that was taken for one document but is no JSON.

    Files that lack their last newline, written one after the other, have two documents in a line.
    """
    return list(_Scanner(document.data, 0, document.line).scan())


def _goes_on(data: bytes, end_of_line: int) -> bool:
    """Whether the value of a line that ends with `}` may go on in the next one."""
    if end_of_line + 1 >= len(data) or data[end_of_line + 1] == _OPEN:
        return False
    match = _NEXT_BYTE.match(data, end_of_line)
    return match is not None and match[1] in (b",", b"}")


class _NoValueError(Exception):
    """No value begins at a place; `vain_bytes` were parsed to find out."""

    def __init__(self, message: str, vain_bytes: int, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.vain_bytes = vain_bytes
        self.too_large = too_large


class _Scanner:
    """Finds the values of a text by parsing it; the elements of an array count as values."""

    def __init__(self, data: bytes, position: int, line: int) -> None:
        self._data = data
        self._begin = position
        self._line, self._counted = line, position
        self._vain_bytes = _VAIN_PASSES * (len(data) - position) + _VAIN_BYTES

    def scan(self) -> Iterator[RawDocument | Malformed]:
        data = self._data
        position = self._skip_blank(self._begin)
        array_line: int | None = None
        while position < len(data):
            if array_line is None and data[position] == _ARRAY:
                array_line = self._line_at(position)
                position = self._skip_blank(position + 1)
                continue
            if array_line is not None and data[position] == _ARRAY_END:
                array_line = None
                position = self._skip_blank(position + 1)
                continue
            line = self._line_at(position)
            try:
                end = _end_of_value(data, position)
            except _NoValueError as error:
                self._vain_bytes -= error.vain_bytes
                excerpt_here = _excerpt(data, position)
                if self._vain_bytes < 0:
                    yield Malformed(line, _GIVEN_UP, excerpt_here)
                    return
                yield Malformed(line, error.message, excerpt_here, error.too_large)
                position = self._resume_after(position)
            else:
                yield RawDocument(line, data[position:end])
                position = self._skip_blank(end)
                # Outside an array a comma is a mistake that costs nothing.
                if data[position : position + 1] == b",":
                    position = self._skip_blank(position + 1)
        if array_line is not None:
            yield Malformed(
                array_line, "no JSON: the file ends before the array that begins here does", "["
            )

    def _skip_blank(self, position: int) -> int:
        match = _BLANK.match(self._data, position)
        return match.end() if match else position

    def _resume_after(self, position: int) -> int:
        """Where the next value may begin: a line that is not indented more than the bad one.

        Lines that are indented more belong to the bad value, if that is one at all.
        """
        data = self._data
        begin_of_line = data.rfind(b"\n", 0, position) + 1
        before = data[begin_of_line:position].replace(_BYTE_ORDER_MARK, b" ")
        indentation = len(before)
        if data[position] not in b"{[" or before.strip(b" \t"):
            indentation = len(data)
        end_of_line = data.find(b"\n", position)
        if end_of_line < 0:
            return len(data)
        for match in _BEGIN_OF_LINE.finditer(data, end_of_line + 1):
            if len(match[1].replace(_BYTE_ORDER_MARK, b" ")) <= indentation:
                return match.end() - 1
        return len(data)

    def _line_at(self, position: int) -> int:
        self._line += self._data.count(b"\n", self._counted, position)
        self._counted = position
        return self._line


def _end_of_value(data: bytes, position: int) -> int:
    """Where the JSON value that begins at a position ends.

    Raises:
        _NoValueError: none does, or it is larger than a document may be.
    """
    piece_bytes = _FIRST_PIECE_BYTES
    while True:
        piece = data[position : position + piece_bytes]
        is_rest = position + len(piece) == len(data)
        text = piece.decode("utf-8", "surrogateescape")
        try:
            _, end = _decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            in_string = error.msg.startswith("Unterminated string")
            may_go_on = in_string or error.pos > len(text) - _CUT_CHARACTERS
            if is_rest or not may_go_on:
                vain_bytes = len(piece) if in_string else error.pos
                raise _NoValueError(_message(error), vain_bytes) from error
        except (ValueError, RecursionError) as error:
            # A ValueError that is no JSONDecodeError: an integer of thousands of digits.
            raise _NoValueError(_message(error), len(piece)) from error
        else:
            # A number may go on behind the piece.
            if is_rest or end < len(text) or text[end - 1] in '}]"':
                return position + len(text[:end].encode("utf-8", "surrogateescape"))
        if piece_bytes >= MOST_DOCUMENT_BYTES:
            raise _NoValueError(_TOO_LARGE, len(piece), too_large=True)
        piece_bytes = min(2 * piece_bytes, MOST_DOCUMENT_BYTES)


def _message(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return NESTED_TOO_DEEPLY
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg}"
    return "no JSON that can be kept: an integer of thousands of digits"


def _excerpt(data: bytes, position: int) -> str:
    return excerpt(data[position : position + EXCERPT_CHARACTERS * 4])


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
