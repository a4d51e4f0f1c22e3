"""DAGSTER_HOME/dagster.yaml: a part that we keep up to date, and whatever its owner wrote.

The managed part stands at the end between two marks. An entry of the owner's, one at the top level
that is not as we ever wrote it, is never changed: it takes the place of ours, and what that leaves
out is said. Files from before there were marks are told apart entry by entry. Nothing here reads
or writes a file but those of this package; `instance.py` does that.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

_BEGIN = "# >>> kernelindex keeps what follows up to date; write entries of your own above. "
_END = "# <<< kernelindex"
_PART = re.compile(
    rf"^{re.escape(_BEGIN)}\[(?P<digest>[0-9a-f]*)\]\n(?P<part>.*?)^{re.escape(_END)}[^\n]*(\n|\Z)",
    re.DOTALL | re.MULTILINE,
)


class InstanceSettingsError(Exception):
    """Text that is no settings file; the message says where and why."""


@dataclass(frozen=True)
class Renewed:
    """The text of the file as it should be, and what the owner should know, a line each."""

    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    """A top-level entry: comments and empty lines before it, and its own lines."""

    key: str
    before: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def body(self) -> str:
        return "".join(self.lines).strip()


def renewed(text: str) -> Renewed:
    """A settings file with our part as it is now; its owner's entries and comments stay.

    Raises:
        InstanceSettingsError: the text is not one YAML mapping, or has an entry twice.
    """
    rest = _without_untouched_part(text.replace("\r\n", "\n"))
    there = _values(rest)
    shipped = _shipped("dagster.yaml")
    ours = _values(shipped)
    try:
        own_text = _own_text(rest)
        own = _values(own_text)
        part = _part([entry for entry in _entries(shipped) if entry.key not in own])
        gap = "\n" if own_text and part else ""
        found = own_text.rstrip("\n") + "\n" * bool(own_text) + gap + part
        whole = _values(found) == {**ours, **own} and {**there, **own} == there
    except InstanceSettingsError:
        whole = False
    if not whole:
        lacking = ", ".join(key for key in ours if key not in there) or "nothing"
        note = f"its entries cannot be told apart, so it stays as it is; it lacks {lacking}"
        return Renewed(text, (note,))
    return Renewed(found, tuple(_notes(ours, own)))


def _part(entries: list[_Entry]) -> str:
    text = "".join(line for entry in entries for line in (*entry.before, *entry.lines)).strip("\n")
    if not text:
        return ""
    return f"{_BEGIN}[{_digest(text)}]\n{text}\n{_END}\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.strip("\n").encode()).hexdigest()[:16]


def _without_untouched_part(text: str) -> str:
    """The text without our part; what somebody changed in it is theirs, and stays."""
    return _PART.sub(
        lambda found: "" if found["digest"] == _digest(found["part"]) else found["part"],
        text if text.endswith("\n") or not text else f"{text}\n",
    )


def _own_text(text: str) -> str:
    """The text without the entries that stand there as we wrote them, now or earlier."""
    known = [*_entries(_shipped("dagster.yaml"))]
    for document in _shipped("dagster-earlier.yaml").split("\n---\n")[1:]:
        known += _entries(document)
    bodies = {(entry.key, entry.body) for entry in known}
    comments = {line.strip() for entry in known for line in entry.before} | {""}
    kept: list[str] = []
    entries = _entries(text)
    for entry in entries:
        if (entry.key, entry.body) not in bodies:
            kept += [*entry.before, *entry.lines]
        elif not comments.issuperset(line.strip() for line in entry.before):
            kept += entry.before
    found = "".join([*kept, *_after(text, entries)])
    return found.lstrip("\n") if found.strip() else ""


def _entries(text: str) -> list[_Entry]:
    """The top-level entries in their order."""
    lines = text.splitlines(keepends=True)
    root = yaml.compose(text, yaml.SafeLoader)
    starts = [key.start_mark.line for key, _ in root.value] if root is not None else []
    entries: list[_Entry] = []
    place = 0
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        while end > start + 1 and _is_between(lines[end - 1]):
            end -= 1
        key = str(root.value[number][0].value)
        entries.append(_Entry(key, tuple(lines[place:start]), tuple(lines[start:end])))
        place = end
    return entries


def _after(text: str, entries: list[_Entry]) -> list[str]:
    used = sum(len(entry.before) + len(entry.lines) for entry in entries)
    return text.splitlines(keepends=True)[used:]


def _is_between(line: str) -> bool:
    """Whether a line belongs to no entry: empty, or a comment that is not indented."""
    return not line.strip() or line.startswith("#")


def _values(text: str) -> dict[str, Any]:
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InstanceSettingsError(f"{where}no YAML ({problem})") from error
    except RecursionError as error:
        raise InstanceSettingsError("no YAML that can be read (nested too deeply)") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InstanceSettingsError("has no entries of the form `name: value`")
    keys = [key.value for key, _ in root.value]
    for key in keys:
        if keys.count(key) > 1:
            raise InstanceSettingsError(f"has the entry {key} twice")
    return values


def _notes(ours: dict[str, Any], own: dict[str, Any]) -> Iterator[str]:
    for key in ours:
        if key in own and (lacking := list(_lacking(ours[key], own[key], key))):
            yield f"your entry {key} stays as it is; kernelindex expects {', '.join(lacking)}"


def _lacking(ours: Any, own: Any, path: str) -> Iterator[str]:
    """What ours has and the owner's entry does not, as `path: value`."""
    if isinstance(ours, dict) and isinstance(own, dict):
        for name, value in ours.items():
            yield from _lacking(value, own.get(name), f"{path}.{name}")
    elif ours != own and not (isinstance(ours, list) and _has_all(ours, own)):
        text = yaml.safe_dump(ours, default_flow_style=True, width=1000)
        yield f"{path}: {text.splitlines()[0]}"


def _has_all(ours: list[Any], own: Any) -> bool:
    return isinstance(own, list) and all(item in own for item in ours)


def _shipped(name: str) -> str:
    return resources.files("pipelines").joinpath(name).read_text(encoding="utf-8")
