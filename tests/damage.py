"""Damaged variants of a file: cut off, flipped, and with every value replaced by odd ones.

Each variant is the same in every run. What a reader makes of them is for the tests of that reader.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

# Values that some reader took for granted could not come.
ODD_VALUES: list[tuple[str, str]] = [
    ("null", "null"),
    ("true", "true"),
    ("negative", "-1"),
    ("zero", "0"),
    ("fraction", "0.5"),
    ("beyond 64 bits", "9" * 30),
    ("thousands of digits", "9" * 5000),
    ("infinite", "1e999"),
    ("NaN", "NaN"),
    ("empty text", '""'),
    ("NUL", '"\\u0000"'),
    ("half a pair", '"\\ud800"'),
    ("escape", '"\\u001b[2J"'),
    ("long text", '"' + "x" * 5000 + '"'),
    ("a path", '"../../etc/passwd"'),
    ("no time", '"2026-02-30T25:61:00"'),
    ("far time", '"9999-12-31T23:59:59-23:59"'),
    ("empty list", "[]"),
    ("empty object", "{}"),
    ("list of lists", "[[[]]]"),
    ("object", '{"a": {"b": null}}'),
    ("deep", "[" * 3000 + "]" * 3000),
]
_HOLE = "\ue000hole\ue000"


def damaged_bytes(data: bytes, count: int, seed: int = 1) -> Iterator[tuple[str, bytes]]:
    """Variants of any file: cut off, with flipped, missing and doubled stretches, and others."""
    chance = random.Random(seed)
    yield "empty", b""
    yield "only NUL", b"\x00" * 100
    yield "a byte order mark before", b"\xef\xbb\xbf" + data
    yield "UTF-16", data.decode("utf-8", "replace").encode("utf-16")
    yield "no UTF-8 inside", data[: len(data) // 2] + b"\xff\xfe" + data[len(data) // 2 :]
    yield "twice", data + data
    for number in range(count):
        at = chance.randrange(len(data))
        length = chance.randrange(1, max(2, len(data) // 4))
        match number % 4:
            case 0:
                yield f"cut at {at}", data[:at]
            case 1:
                flipped = bytearray(data)
                for _ in range(chance.randrange(1, 8)):
                    flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                yield f"flipped {number}", bytes(flipped)
            case 2:
                yield f"{length} bytes missing at {at}", data[:at] + data[at + length :]
            case 3:
                yield f"{length} bytes doubled at {at}", data[: at + length] + data[at:]


def damaged_json(document: Any, count: int, seed: int = 1) -> Iterator[tuple[str, bytes]]:
    """Variants of a JSON document: one value replaced by an odd one, or one field left out."""
    chance = random.Random(seed)
    places = list(_places(document))
    for number in range(count):
        place = places[chance.randrange(len(places))] if number >= len(places) else places[number]
        shown = "$" + "".join(f".{part}" for part in place)
        if number % 8 == 7 and place and isinstance(place[-1], str):
            yield f"{shown} left out", _without(document, place)
            continue
        name, text = ODD_VALUES[chance.randrange(len(ODD_VALUES))]
        yield f"{shown} {name}", _replaced(document, place, text)


def _places(document: Any, place: Path = ()) -> Iterator[Path]:
    yield place
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _places(value, (*place, name))
    elif isinstance(document, list):
        for number, value in enumerate(document[:3]):
            yield from _places(value, (*place, number))


def _replaced(document: Any, place: Path, text: str) -> bytes:
    if not place:
        return text.encode()
    copy = json.loads(json.dumps(document))
    holder = copy
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = _HOLE
    return json.dumps(copy).replace(json.dumps(_HOLE), text).encode()


def _without(document: Any, place: Path) -> bytes:
    copy = json.loads(json.dumps(document))
    holder = copy
    for part in place[:-1]:
        holder = holder[part]
    del holder[place[-1]]
    return json.dumps(copy).encode()
