"""Whatever form a file has, each good document comes out with its line."""

import json
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.traces.lines import (
    EXCERPT_CHARACTERS,
    MOST_DOCUMENT_BYTES,
    Malformed,
    RawDocument,
    cut_again,
    excerpt,
    explain,
    read_documents,
)


def read(data: bytes) -> list[tuple[int, object]]:
    """(line, content) of the documents of a file; malformed stretches are left out."""
    return [
        (item.line, json.loads(item.data))
        for item in read_documents(data)
        if isinstance(item, RawDocument)
    ]


def malformed_lines(data: bytes) -> list[int]:
    return [item.line for item in read_documents(data) if isinstance(item, Malformed)]


A, B, C = {"a": 1}, {"b": {"c": [1, 2]}, "text": "x}\n{"}, {"c": None}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b" \r\n\t\n", []),
        (b'{"a": 1}', [(1, A)]),
        (b'\n\n{"a": 1}\n\n{"c": null}', [(3, A), (5, C)]),
        (b'{"a": 1}\r\n\r\n{"c": null}\r\n', [(1, A), (3, C)]),
        (b'\xef\xbb\xbf{"a": 1}\n\xef\xbb\xbf{"c": null}\n', [(1, A), (2, C)]),
        (b'[{"a": 1}, {"c": null}]', [(1, A), (1, C)]),
        (b'[\n  {"a": 1},\n  {"c": null}\n]\n', [(2, A), (3, C)]),
        (b"[]", []),
        (b'[]\n{"a": 1}', [(2, A)]),
        (b'[{"a": 1}]\n[{"c": null}]', [(1, A), (2, C)]),
        (b'{"a": 1},\n{"c": null},\n', [(1, A), (2, C)]),
        (b'{\n "a": 1\n}\n{\n "c": null\n}', [(1, A), (4, C)]),
        (b'{"a": 1}\n{\n "c": null\n}\n{"a": 1}', [(1, A), (2, C), (5, A)]),
        (b'{"a": {}\n, "b": {}}\n{"a": 1}', [(1, {"a": {}, "b": {}}), (3, A)]),
        (b'  {"a": 1}\n{"c": null}', [(1, A), (2, C)]),
    ],
)
def test_every_form_of_file_is_read(data: bytes, expected: list[tuple[int, object]]) -> None:
    assert read(data) == expected
    assert malformed_lines(data) == []


@pytest.mark.parametrize(
    ("data", "expected", "bad_lines"),
    [
        (b'nonsense\n{"a": 1}', [(2, A)], [1]),
        (b'{"a": 1}\nnonsense\n{"c": null}', [(1, A), (3, C)], [2]),
        (b'{"a": 1}\n}\n{"c": null}', [(1, A), (3, C)], [2]),
        (b'{"a": 1}\n{"a": \n{"c": null}', [(1, A), (3, C)], [2]),
        (b'{"a": 1}\n{"a": "cut', [(1, A)], [2]),
        (
            b'[\n {"a": 1},\n {"b": ,\n  "d": [\n   {"e": 1}]},\n {"c": null}\n]',
            [(2, A), (6, C)],
            [3],
        ),
        (b'[{"a": 1},\n', [(1, A)], [1]),
        (b'[\n{"a": 1},\n{"c": nul', [(2, A)], [3, 1]),
        (b'\x00\n{"a": 1}', [(2, A)], [1]),
        (b"\xff\xfe{\x00}\x00\n", [], [1]),
    ],
)
def test_a_bad_stretch_costs_no_other_document(
    data: bytes, expected: list[tuple[int, object]], bad_lines: list[int]
) -> None:
    assert read(data) == expected
    assert malformed_lines(data) == bad_lines


def test_text_nested_too_deeply_and_endless_integers_are_malformed() -> None:
    deep = b'{"a": ' + b"[" * 100_000 + b'\n{"a": 1}'
    assert read(deep) == [(2, A)]
    assert malformed_lines(deep) == [1]
    endless = b'{\n"a": ' + b"9" * 5000 + b'\n}\n{"a": 1}'
    assert read(endless) == [(4, A)]
    assert malformed_lines(endless) == [1]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1\n' * 80_000,
        b'{"a":\n' * 200_000,
        b'{"a":[\n' * 200_000,
        b'{"a":"x\n' * 100_000,
        b'["\n' * 100_000,
        b'{"a":[' + b'{"b":[0],\n' * 60_000,
        (b'{"a":[' + b"0," * 500 + b"\n") * 1400,
    ],
    ids=["unclosed", "objects", "arrays", "strings", "quotes", "one array", "long"],
)
def test_values_that_never_end_cost_little_more_than_the_file(data: bytes) -> None:
    started = time.process_time()
    json.loads(b"[" + b'{"a":1},' * 60_000 + b"1]")
    json_s = time.process_time() - started
    started = time.process_time()
    assert malformed_lines(data)
    # A parser that begins anew at each line takes minutes.
    assert time.process_time() - started < 200 * json_s + 5


def test_what_cannot_be_told_from_a_value_that_goes_on_is_found_in_any_piece() -> None:
    for size in range(16 * 1024 - 40, 16 * 1024 + 40):
        for rest in (
            b"-Infinity",
            b'"\\ud83d\\ude00"',
            b"1.5e10",
            b"true",
            "é€😀".join('""').encode(),
        ):
            document = b'{"a": "' + b"x" * size + b'", "b": ' + rest + b"}"
            assert [found.data for found in read_raw(b"\n[" + document + b"]")] == [document]
            assert read_raw(b"[" + b"7" * 10 + b"]")[0].data == b"7777777777"


def read_raw(data: bytes) -> list[RawDocument]:
    return [item for item in read_documents(data) if isinstance(item, RawDocument)]


@pytest.mark.parametrize(
    "large",
    [
        b'{"a": "' + b"x" * MOST_DOCUMENT_BYTES + b'"}',
        b'{"a": [' + b"1," * (MOST_DOCUMENT_BYTES // 2) + b"1]}",
        b" " * 100 + b'{"a": "' + b"x" * MOST_DOCUMENT_BYTES + b'"}',
    ],
)
def test_a_document_that_is_too_large_costs_no_other_one(large: bytes) -> None:
    found = list(read_documents(b'{"a": 1}\n' + large + b'\n{"c": null}'))
    assert [isinstance(item, Malformed) and item.too_large for item in found] == [
        False,
        True,
        False,
    ]
    assert [item.line for item in found] == [1, 2, 3]


def test_an_array_may_be_longer_than_a_document() -> None:
    data = b"[" + b'{"a": "' + b"x" * 1000 + b'"},'
    data = data + data[1:] * (MOST_DOCUMENT_BYTES // 1000) + b'{"a": 1}]'
    assert len(read_raw(data)) == MOST_DOCUMENT_BYTES // 1000 + 2
    assert malformed_lines(data) == []


@dataclass(frozen=True)
class Part:
    """A piece of a file, and the document that it has to give."""

    text: bytes
    document: object = None


objects = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["}", "{", "} {", "\n", "NaN"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
).map(lambda value: {"document": value})


def _good(document: object, indentation: int | None, ascii_only: bool) -> Part:
    text = json.dumps(document, indent=indentation, ensure_ascii=ascii_only)
    return Part(text.encode(), document)


good = st.builds(_good, objects, st.sampled_from([None, None, 0, 2]), st.booleans())
blank = st.sampled_from([b"", b"  ", b"\t"]).map(Part)
# What could be the rest of a document that was begun on an earlier line is no garbage.
garbage = st.binary(max_size=12).map(
    lambda data: Part(b"#" + data.translate(None, b"\n\r]}:,"))
) | st.sampled_from([b"null", b"12", b'"x"', b"{", b"[", b"NaN", b"{[{", b"\xff\xfe"]).map(Part)


@st.composite
def truncated(draw: st.DrawFn) -> Part:
    text = draw(good).text
    # At least the last bracket is missing, and no line of the rest begins a document.
    kept = text[: draw(st.integers(1, max(1, len(text) - 1)))]
    return Part(kept.rstrip(b"}]\n\r ") or b"{")


@given(
    st.lists(good | blank | garbage | truncated(), max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.booleans(),
    st.booleans(),
)
def test_every_good_document_of_any_mixture_has_its_line(
    parts: list[Part], line_end: bytes, with_mark: bool, with_last_line_end: bool
) -> None:
    data = line_end.join(part.text for part in parts)
    data = (
        (b"\xef\xbb\xbf" if with_mark else b"") + data + (line_end if with_last_line_end else b"")
    )
    expected = []
    line = 1
    for part in parts:
        if part.document is not None:
            expected.append((line, part.document))
        line += part.text.count(b"\n") + line_end.count(b"\n")
    found = [item for item in read_documents(data) if isinstance(item, RawDocument)]
    documents = [(item.line, json.loads(item.data)) for item in found if explain(item.data) is None]
    assert [pair for pair in documents if _is_ours(pair[1])] == expected


def _is_ours(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"document"}


@given(st.lists(objects, min_size=2, max_size=4), st.sampled_from([b"", b" ", b", "]))
def test_documents_that_share_a_line_are_cut_apart(documents: list[object], between: bytes) -> None:
    line = between.join(json.dumps(document).encode() for document in documents)
    [item] = read_documents(line)
    assert isinstance(item, RawDocument)
    pieces = cut_again(item)
    assert [
        json.loads(piece.data) for piece in pieces if isinstance(piece, RawDocument)
    ] == documents


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(data: bytes) -> None:
    lines = data.count(b"\n") + 1
    assert all(1 <= item.line <= lines for item in read_documents(data))


def test_what_is_no_json_is_explained() -> None:
    assert explain(b'{"a": NaN, "b": "\\ud800"}') is None
    assert explain(b'{"a": }') == "no JSON: Expecting value at column 7"
    assert explain(b'{"a": "\xff"}') == "no UTF-8: invalid start byte at byte 7"
    assert explain(b"[" * 100_000) == "no JSON: nested too deeply"
    assert "thousands of digits" in (explain(b"9" * 5000) or "")


def test_an_excerpt_is_short_and_printable() -> None:
    assert excerpt(b"\xff" + "é".encode() * 500) == "\ufffd" + "é" * (EXCERPT_CHARACTERS - 1)
