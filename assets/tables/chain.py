"""The chain: what the warehouse once published, on record beside the files that it published.

    chain/links   one line a link: the digest of its JSON text, a space, the text
    chain/head    the number of links, then the newest lines once more

Each link names the digest of the one before, so that none can be taken out of the middle, and the
head says how many there are, so that none can be taken from the end. The head is written first:
a process that dies between the two leaves a head that holds what the links lack. Links are only
ever added. What the chain means for the files beside it is the business of `losses.py`.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from assets.tables.contracts import unknown_to_this
from assets.tables.failpoints import passing
from assets.tables.warehouse import Generation, Publication, PublishedTable, Warehouse
from assets.traces.snapshot import write_atomically

_FOLDER = "chain"
_START = "0" * 64


class Event(StrEnum):
    """What a link says."""

    PUBLISHED = "published"
    REMADE = "remade"
    """Its files were made again from raw bytes, with the same rows and other bytes."""
    WITNESSED = "witnessed"
    """It was published; only the database or a gap in the numbers still says so."""
    COMPACTED = "compacted"
    LOSS_ACCEPTED = "loss accepted"
    RAW_LOSS_ACCEPTED = "raw loss accepted"
    REBUILT = "rebuilt"
    """The links before this one were damaged; what could be read of them follows."""


class Compacted(BaseModel):
    """A generation: its files, and the publications that they hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    created_at: AwareDatetime
    publications: tuple[str, ...]
    tables: dict[str, PublishedTable]


class Link(BaseModel):
    """One thing that happened to what is published."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    previous: str = _START
    at: AwareDatetime
    event: Event
    publication_id: str | None = None
    record: Publication | None = None
    generation: Compacted | None = None
    reason: str | None = None


def link(
    event: Event,
    publication_id: str | None = None,
    *,
    record: Publication | None = None,
    generation: Generation | None = None,
    reason: str | None = None,
) -> Link:
    """A link of now, still without the digest of the one before."""
    compacted = None
    if generation is not None:
        compacted = Compacted(
            number=generation.number,
            created_at=generation.created_at,
            publications=tuple(item.publication_id for item in generation.publications),
            tables=generation.tables,
        )
    return Link(
        at=datetime.now(UTC).replace(microsecond=0),
        event=event,
        publication_id=record.publication_id if record else publication_id,
        record=record,
        generation=compacted,
        reason=reason,
    )


@dataclass
class Chain:
    """The links that could be read; `problems` says what is wrong with the files they are in."""

    exists: bool = False
    links: list[Link] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def end(self) -> str:
        """The digest that the next link names."""
        return _digest_of(self.lines[-1]) if self.lines else _START

    @property
    def records(self) -> dict[str, Publication | None]:
        """What was published, by identifier; None where only its name is known."""
        found: dict[str, Publication | None] = {}
        for item in self.links:
            if item.event in (Event.PUBLISHED, Event.REMADE, Event.WITNESSED):
                name = item.publication_id or ""
                found[name] = item.record or found.get(name)
        return found

    @property
    def given_up(self) -> set[str]:
        """Publications whose loss a person accepted, and that did not come back."""
        state = {
            item.publication_id or "": item.event
            for item in self.links
            if item.event in (Event.PUBLISHED, Event.LOSS_ACCEPTED)
        }
        return {name for name, event in state.items() if event is Event.LOSS_ACCEPTED}

    @property
    def raw_given_up(self) -> set[str]:
        """Publications that cannot be made again from raw bytes, which a person accepted."""
        return self._named(Event.RAW_LOSS_ACCEPTED)

    @property
    def generation(self) -> Compacted | None:
        """The newest generation."""
        found = [item.generation for item in self.links if item.generation is not None]
        return max(found, key=lambda item: item.number, default=None)

    def compacted(self, number: int) -> Compacted | None:
        """One generation, as it was written last."""
        found = [item.generation for item in self.links if item.generation is not None]
        return next((item for item in reversed(found) if item.number == number), None)

    def _named(self, event: Event) -> set[str]:
        return {item.publication_id or "" for item in self.links if item.event is event}


def read_chain(warehouse: Warehouse) -> Chain:
    """The chain of a warehouse; one of an earlier version has none.

    Raises:
        OtherVersionError: a newer version of this program added to it.
    """
    chain = _read(warehouse)
    # Without the lock, two publications may fall between reading one file and the other.
    return _read(warehouse) if chain.problems else chain


def _read(warehouse: Warehouse) -> Chain:
    links_file, head_file = _files(warehouse)
    if not links_file.exists() and not head_file.exists():
        return Chain()
    chain = Chain(exists=True)
    lines = _lines(links_file, chain)
    count, newest = _head(head_file, chain)
    start = count - len(newest)
    if count and start <= len(lines) <= count and lines[start:] == newest[: len(lines) - start]:
        lines = [*lines[:start], *newest]
    elif count:
        chain.problems.append(f"{links_file}: {len(lines)} links, and not those of its head")
        lines += [line for line in newest if line not in lines]
    before = _START
    for number, line in enumerate(lines, start=1):
        found = _parsed(line, links_file)
        if found is None:
            chain.problems.append(f"{links_file}:{number}: is not what its digest says")
            continue
        if found.previous != before:
            chain.problems.append(f"{links_file}:{number}: does not follow the link before it")
        before = _digest_of(line)
        chain.links.append(found)
        chain.lines.append(line)
    return chain


def add_links(warehouse: Warehouse, chain: Chain, added: Iterable[Link]) -> None:
    """Write links at the end of a chain; the writer's lock is held."""
    new = list(added)
    if not new:
        return
    for item in new:
        follows = item.model_copy(update={"previous": chain.end})
        chain.links.append(follows)
        chain.lines.append(_line(follows))
    links_file, head_file = _files(warehouse)
    for path in (links_file.parent, links_file, head_file):
        if path.exists() and path.is_dir() != (path == links_file.parent):
            warehouse.put_aside(path)
    links_file.parent.mkdir(exist_ok=True)
    newest = chain.lines[len(chain.lines) - len(new) :]
    _write_lines(head_file, [str(len(chain.lines)), *newest])
    passing("head written")
    _write_lines(links_file, chain.lines)
    passing("links written")
    chain.exists = True


def rebuild(warehouse: Warehouse, chain: Chain) -> Chain:
    """Write a damaged chain anew from the links that can be read; the lock is held."""
    reason = "; ".join(problem.rpartition("/")[2] for problem in chain.problems[:3])
    again = Chain()
    add_links(warehouse, again, [link(Event.REBUILT, reason=reason), *chain.links])
    return again


def _files(warehouse: Warehouse) -> tuple[Path, Path]:
    folder = warehouse.root / _FOLDER
    return folder / "links", folder / "head"


def _write_lines(path: Path, lines: list[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _line(item: Link) -> str:
    text = item.model_dump_json(exclude_none=True)
    return f"{hashlib.sha256(text.encode()).hexdigest()} {text}"


def _digest_of(line: str) -> str:
    return line.partition(" ")[0]


def _parsed(line: str, path: Path) -> Link | None:
    digest, _, text = line.partition(" ")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        return None
    try:
        return Link.model_validate_json(text)
    except ValidationError as error:
        # Whole, as its digest says, and not what this version writes.
        raise unknown_to_this("a link of a kind", path) from error


def _lines(path: Path, chain: Chain) -> list[str]:
    try:
        if path.is_symlink():
            chain.problems.append(f"{path}: is a link to another file")
        # What is no UTF-8 fails its digest, and the lines beside it do not.
        text = path.read_bytes().decode(errors="replace")
        return [line for line in text.split("\n") if line]
    except FileNotFoundError:
        return []  # the head may hold all of it
    except OSError as error:
        chain.problems.append(f"{path}: cannot be read ({error})")
        return []


def _head(path: Path, chain: Chain) -> tuple[int, list[str]]:
    if not path.exists():
        chain.problems.append(f"{path}: is gone")
        return 0, []
    count, *newest = _lines(path, chain) or [""]
    if not count.isdecimal() or any(_parsed(line, path) is None for line in newest):
        chain.problems.append(f"{path}: is not the head of a chain")
        return 0, [line for line in newest if _parsed(line, path) is not None]
    return int(count), newest
