"""The database as it stood after an earlier publication, built once and kept beside the current."""

import hashlib
from pathlib import Path

from assets.leaderboards.build import build_database
from assets.leaderboards.catalog import sql_catalog
from assets.tables.leases import reading
from assets.tables.set_aside import set_aside
from assets.tables.time_travel import WarehouseAsOf, find_publication
from assets.tables.warehouse import Warehouse


def database_as_of(warehouse: Warehouse, publication: str) -> Path:
    """The database file over all publications up to one, by today's formulas.

    `publication` is an identifier, its beginning, or a number.

    Raises:
        WarehouseError: no such publication, a folder that cannot be written, damaged files.
    """
    record = find_publication(warehouse, publication)
    past = WarehouseAsOf(warehouse, record.publication_id, _variant(warehouse))
    if past.database.is_file():
        past.database.touch()
    else:
        with reading(warehouse):
            build_database(past)
    past.forget_others()
    return past.database


def _variant(warehouse: Warehouse) -> str:
    """Eight hexadecimal digits that change with the files under `sql/` and what is set aside."""
    versions = [table.file.code_version for table in sql_catalog()]
    text = "".join([*versions, *set_aside(warehouse)])
    return hashlib.sha256(text.encode()).hexdigest()[:8]
