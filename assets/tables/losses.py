"""What was published here and is not here any more: it is named, and nothing is built without it.

The chain and the database's own list of publications are the witnesses. A warehouse without a
chain (new, or of an earlier version) gets one with the first thing that is written to it. A
person accepts a loss in `acceptance.py`; what can be made again, `repair.py` makes again.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
from pydantic import ValidationError

from assets.tables.chain import Chain, Event, Link, add_links, link, read_chain
from assets.tables.errors import OtherVersionError, WarehouseError
from assets.tables.published_copies import keep_copies, needs_copies, rows_of_generation
from assets.tables.reader import open_database_file
from assets.tables.warehouse import (
    GENERATION_RECORD,
    GENESIS,
    Generation,
    Publication,
    Warehouse,
)


def seen_chain(warehouse: Warehouse) -> Chain:
    """The chain together with what is not in it yet; nothing is written."""
    chain = read_chain(warehouse)
    chain.links += _unlinked(warehouse, chain)
    return chain


def _unlinked(warehouse: Warehouse, chain: Chain) -> list[Link]:
    own = _own_records(warehouse)
    if not chain.exists and any(record.previous for record in own.values()):
        chain.exists = True
        chain.problems.append(f"{warehouse.root / 'chain'}: is gone")
    return list(_new_links(warehouse, chain, own))


def catch_up(warehouse: Warehouse) -> Chain:
    """Add to the chain what is not in it yet; the writer's lock is held.

    That is everything for a warehouse without one, and else what a process published that died
    right after.

    Raises:
        OtherVersionError: a newer version of this program wrote here.
        WarehouseError: the chain is damaged.
    """
    chain = read_chain(warehouse)
    unlinked = _unlinked(warehouse, chain)
    if chain.problems:
        raise WarehouseError(f"{chain.problems[0]}; run `kernelindex doctor --repair`")
    add_links(warehouse, chain, [_with_copies(warehouse, item) for item in unlinked])
    return chain


def lost(warehouse: Warehouse, chain: Chain) -> list[str]:
    """Publications that have no directory and are in no generation, without accepted losses."""
    here = set(warehouse.publication_folders()) | set(in_generation(warehouse, chain))
    return list(_missing(chain, here))


def expect_whole(warehouse: Warehouse) -> Chain:
    """The chain, brought up to date, where all that it names is here; the writer's lock is held.

    Raises:
        WarehouseError: something is lost, and nobody accepted that.
    """
    chain = catch_up(warehouse)
    gone = list(_missing(chain, {record.publication_id for record in warehouse.publications()}))
    if gone:
        names = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        raise WarehouseError(
            f"{warehouse.root}: {names} {'was' if len(gone) == 1 else 'were'} published here and "
            "cannot be found any more, so everything is left as it is; `kernelindex doctor` says "
            "what can be done"
        )
    return chain


def in_generation(warehouse: Warehouse, chain: Chain) -> tuple[str, ...]:
    """The publications whose rows lie in the newest generation, by its record or by the chain."""
    try:
        generation = warehouse.generation()
    except WarehouseError:
        numbers = warehouse.generation_numbers()
        compacted = chain.compacted(numbers[-1]) if numbers else None
        return compacted.publications if compacted else ()
    return tuple(item.publication_id for item in generation.publications) if generation else ()


def _missing(chain: Chain, here: set[str]) -> Iterator[str]:
    numbers = {name.partition("-")[0] for name in here}
    for name in sorted(chain.records.keys() - here - chain.given_up):
        # Of some nothing but their number is known.
        if "-" in name or name not in numbers:
            yield name


def _own_records(warehouse: Warehouse) -> dict[str, Publication]:
    """The readable records of publications, by identifier; a damaged one is a matter of repair."""
    found: dict[str, Publication] = {}
    try:
        generation = warehouse.generation()
    except OtherVersionError:
        raise
    except WarehouseError:
        generation = None
    for publication_id in warehouse.publication_folders():
        try:
            record = warehouse.record_of(publication_id)
        except OtherVersionError:
            raise
        except WarehouseError:
            continue
        if record.publication_id == publication_id != GENESIS:
            found[publication_id] = record
    compacted = generation.publications if generation else ()
    return {record.publication_id: record for record in compacted} | found


def _new_links(warehouse: Warehouse, chain: Chain, own: dict[str, Publication]) -> Iterable[Link]:
    known = chain.records
    folders = set(warehouse.publication_folders())
    for name, record in sorted(own.items()):
        came_back = name in chain.given_up and name in folders
        if came_back or (known.get(name) is None and name not in chain.given_up):
            yield link(Event.PUBLISHED, record=record)
    known = {**known, **own}
    for name, what in _witnessed(warehouse).items():
        if name not in known:
            known[name] = None
            yield link(Event.WITNESSED, name, reason=what)
    numbers = {int(name.partition("-")[0]) for name in known}
    for number in sorted(set(range(1, max(numbers, default=0))) - numbers):
        yield link(Event.WITNESSED, f"{number:08d}", reason="a gap in the numbers")
    try:
        generation = warehouse.generation()
    except WarehouseError:
        return
    if generation is not None:
        compacted = chain.compacted(generation.number)
        if compacted is None or compacted.created_at < generation.created_at:
            yield link(Event.COMPACTED, generation=generation)


def _witnessed(warehouse: Warehouse) -> dict[str, str]:
    """What the database says was published; nothing where it cannot be read."""
    if not warehouse.database.is_file():
        return {}
    try:
        with open_database_file(warehouse.database) as connection:
            rows = connection.execute(
                "select publication_id, kind, dataset, revision from publications order by all"
            ).fetchall()
    except (WarehouseError, duckdb.Error):
        return {}
    return {
        name: " ".join(str(part) for part in (kind, dataset, revision) if part)
        for name, kind, dataset, revision in rows
        if name != GENESIS
    }


def _with_copies(warehouse: Warehouse, item: Link) -> Link:
    """A link whose publication can be made again, as far as its files are here."""
    record = item.record
    if record is None or not needs_copies(record):
        return item
    folder = warehouse.folder_of(record.publication_id)
    if folder.is_dir():
        keep_copies(warehouse, record, folder)
        return item
    generation = warehouse.generation()
    if generation is None:
        return item
    kept = _copies_from_generation(warehouse, generation, record)
    return item.model_copy(update={"record": kept}) if kept else item


def _copies_from_generation(
    warehouse: Warehouse, generation: Generation, record: Publication
) -> Publication | None:
    building = warehouse.building_folder(f"copies-{record.publication_id}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        folder = warehouse.folder_of_generation(generation.number)
        tables = rows_of_generation(folder, generation, record, building)
        if tables is None:
            return None
        kept = record.model_copy(update={"tables": tables})
        keep_copies(warehouse, kept, building)
        return kept
    finally:
        shutil.rmtree(building, ignore_errors=True)


def readable_generation(folder: Path) -> Generation | None:
    """The record of a generation's directory; None where it cannot be read."""
    try:
        return Generation.model_validate_json((folder / GENERATION_RECORD).read_bytes())
    except (OSError, ValidationError):
        return None
