"""Publications that the index is built without, because a statement breaks on what they brought.

`set-aside.jsonl` in the warehouse says so, append-only: one line each time that a publication was
set aside, with the statement and its error, and one each time that a person put it back. Nothing
is removed: the rows stay published, and what is published again is still known. How a culprit is
found is `assets.leaderboards.index`; what a build leaves out is `omission.py`.
"""

import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault, Finding, Level
from assets.tables.warehouse import Publication, Warehouse, published_file

FILE_NAME = "set-aside.jsonl"


class Change(StrEnum):
    """What happened to a publication."""

    SET_ASIDE = "set_aside"
    READMITTED = "readmitted"


class SetAside(BaseModel):
    """One line of the file.

    `statement` is the file under `sql/` that breaks with the publication and not without it,
    `error` what it says. `whole`: also the projects, protocols and environments that the
    publication describes are left out, which others share.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    change: Change
    publication_id: str
    statement: str | None = None
    error: str | None = None
    whole: bool = False


def set_aside(warehouse: Warehouse) -> dict[str, SetAside]:
    """The publications that are set aside now, oldest first.

    Raises:
        WarehouseError: a line of the file that is damaged.
    """
    found: dict[str, SetAside] = {}
    for entry in history(warehouse):
        if entry.change is Change.SET_ASIDE:
            found[entry.publication_id] = entry
        else:
            found.pop(entry.publication_id, None)
    return dict(sorted(found.items()))


def history(warehouse: Warehouse) -> list[SetAside]:
    """Everything that was ever set aside and put back, in that order.

    Raises:
        WarehouseError: a line of the file that is damaged.
    """
    path = warehouse.root / FILE_NAME
    entries: list[SetAside] = []
    for number, line in enumerate(_whole_lines(path).splitlines(), start=1):
        try:
            entries.append(SetAside.model_validate_json(line))
        except ValidationError as error:
            raise WarehouseError(
                f"{path}:{number}: no readable line ({error.errors()[0]['msg']}); remove the line "
                "and run `kernelindex doctor --repair`, which sets aside again what must be"
            ) from error
    return entries


def record(
    warehouse: Warehouse,
    change: Change,
    publication_id: str,
    *,
    statement: str | None = None,
    error: str | None = None,
    whole: bool = False,
) -> SetAside:
    """Append one line, which is on disk when this returns.

    Raises:
        WarehouseError: another process is writing for too long, or the file cannot be written.
    """
    entry = SetAside(
        at=datetime.now(UTC).replace(microsecond=0),
        change=change,
        publication_id=publication_id,
        statement=statement,
        error=error,
        whole=whole,
    )
    path = warehouse.root / FILE_NAME
    with warehouse.locked():
        try:
            whole_lines = _whole_lines(path)
            with path.open("ab") as stream:
                # What a process that died left of a line was never said.
                stream.truncate(len(whole_lines))
                stream.write(entry.model_dump_json(exclude_none=True).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as failure:
            raise WarehouseError(f"{path}: cannot be written ({failure.strerror})") from failure
    return entry


def _whole_lines(path: Path) -> bytes:
    """The file without what a process that died may have left of its last line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise WarehouseError(f"{path}: cannot be read ({error.strerror})") from error
    return data[: data.rfind(b"\n") + 1]


def findings(warehouse: Warehouse) -> list[Finding]:
    """One error for each publication that is set aside: its rows are missing in every answer.

    Raises:
        WarehouseError: a line of the file that is damaged.
    """
    return [
        Finding(
            Fault.SET_ASIDE,
            Level.ERROR,
            f"publication {entry.publication_id}",
            f"set aside at {entry.at:%Y-%m-%d %H:%M} UTC: {entry.statement} breaks with it and not "
            f"without it ({entry.error}); mend that file, or use a version in which it is, and put "
            f"it back: kernelindex doctor --readmit {entry.publication_id}",
        )
        for entry in set_aside(warehouse).values()
    ]


def is_as_published(warehouse: Warehouse, publication: Publication) -> bool:
    """Whether the files that hold its rows are those that were published, to the last byte."""
    generation = warehouse.generation()
    in_generation = generation is not None and publication.publication_id in {
        record.publication_id for record in generation.publications
    }
    if generation is not None and in_generation:
        folder, tables = warehouse.folder_of_generation(generation.number), generation.tables
    else:
        folder, tables = warehouse.folder_of(publication.publication_id), publication.tables
    try:
        return all(
            published_file(folder / file.name) == file
            for table in tables.values()
            for file in table.files
        )
    except (OSError, ValueError):
        return False
