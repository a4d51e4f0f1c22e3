"""Damaged variants of one file: cut, flipped, of wrong types, too large, too deep, of another kind.

A hundred of them a file, always the same ones.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PLACEHOLDER = "a place for text that no JSON encoder would write"
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 2**70, -(2**70), 1e308, float("nan"), float("inf"), 0.5, "", "x",
    "\x00", "\ud800", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00",
    "2026-01-01T00:00:00", "2026-01-01T00:00:00+05:30", "../../etc/passwd", "/etc/passwd", [], {},
    [[]], {"": {}},
)  # fmt: skip
_RAW = (
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "9" * 5_000,
    "-" + "9" * 400,
    "1e999",
    "NaN",
    '"\\ud800"',
    '"' + "x" * 300_000 + '"',
)

Damage = Callable[[Path], None]


def variants(path: Path, number: int = 100) -> Iterator[tuple[str, Damage]]:
    """What can become of a file, each with a name; the file itself is only read."""
    content = path.read_bytes()
    chance = random.Random(path.name)
    yield from _other_kinds()
    for _ in range(12):
        yield _cut(chance.randrange(len(content) + 1))
    for _ in range(24):
        yield _flipped(chance.randrange(max(1, len(content))), 1 << chance.randrange(8))
    for count, junk in enumerate((b"\xff\xfe", b"\x00" * 64, b"\xc3\x28", b"\xed\xa0\x80"), 1):
        yield _inserted(chance.randrange(len(content) + 1), junk, f"junk {count}")
    yield "a line of nothing", lambda target: target.write_bytes(content + b"\n\n")
    yield "doubled", lambda target: target.write_bytes(content * 2)
    left = number - 46
    if path.suffix in (".json", ".jsonl"):
        yield from _of_json(content, path.suffix, chance, left)
    else:
        for _ in range(left):
            yield _flipped(chance.randrange(max(1, len(content))), 0xFF)


def _other_kinds() -> Iterator[tuple[str, Damage]]:
    def replaced(make: Damage) -> Damage:
        def change(target: Path) -> None:
            target.unlink()
            make(target)

        return change

    def linked(target: Path) -> None:
        kept = target.with_name(f".{target.name}")
        target.rename(kept)
        shutil.move(kept, target.parents[2] / "elsewhere")
        target.symlink_to(target.parents[2] / "elsewhere")

    yield "missing", Path.unlink
    yield "a folder", replaced(Path.mkdir)
    yield "a pipe", replaced(os.mkfifo)
    yield "a link", linked


def _cut(length: int) -> tuple[str, Damage]:
    def change(target: Path) -> None:
        target.write_bytes(target.read_bytes()[:length])

    return f"cut to {length} bytes", change


def _flipped(place: int, bits: int) -> tuple[str, Damage]:
    def change(target: Path) -> None:
        content = bytearray(target.read_bytes())
        if content:
            content[place % len(content)] ^= bits
        target.write_bytes(content)

    return f"byte {place} flipped by {bits}", change


def _inserted(place: int, junk: bytes, name: str) -> tuple[str, Damage]:
    def change(target: Path) -> None:
        content = target.read_bytes()
        target.write_bytes(content[:place] + junk + content[place:])

    return name, change


def _of_json(
    content: bytes, suffix: str, chance: random.Random, number: int
) -> Iterator[tuple[str, Damage]]:
    lines = content.decode().splitlines() if suffix == ".jsonl" else [content.decode()]
    lines = lines or ["{}"]
    for count in range(number):
        index = chance.randrange(len(lines))
        document = json.loads(lines[index])
        path = chance.choice(list(_paths(document)) or [()])
        if count < len(_RAW):
            shown, text = f"raw {count}", _RAW[count]
        else:
            value = chance.choice(_VALUES)
            shown, text = repr(value), json.dumps(value)
        changed = json.dumps(_with(document, path, _PLACEHOLDER))
        made = [*lines]
        made[index] = changed.replace(json.dumps(_PLACEHOLDER), text)
        yield (
            f"line {index + 1}, {'.'.join(map(str, path))} is {shown[:40]}",
            lambda target, made=made: target.write_text("\n".join(made) + "\n"),
        )


def _paths(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document[:3])
        if isinstance(document, list)
        else ()
    )
    for key, value in entries:
        yield (*at, key)
        yield from _paths(value, (*at, key))


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = _with(document[path[0]], path[1:], value)
    return copy
