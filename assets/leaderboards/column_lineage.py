"""Column lineage of every table, worked out once per state of the files under `sql/`.

Following columns through CTEs takes seconds; the files rarely change, so the answer is kept beside
the warehouse and made again when any file does.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from assets.leaderboards.catalog import ColumnSource, SqlTable
from assets.traces.snapshot import write_atomically

Lineage = dict[str, list[ColumnSource]]
"""Sources of each column of a table."""


def column_lineage(tables: Sequence[SqlTable], kept: Path) -> dict[str, Lineage]:
    """The lineage of all tables by name; `kept` is where it is remembered."""
    version = hashlib.sha256(
        "".join(table.file.code_version for table in tables).encode()
    ).hexdigest()
    remembered = _read(kept, version)
    if remembered is not None:
        return remembered
    lineage = {table.name: table.lineage() for table in tables}
    document = {
        "version": version,
        "tables": {
            name: {
                column: [[source.table, source.column] for source in sources]
                for column, sources in columns.items()
            }
            for name, columns in lineage.items()
        },
    }
    write_atomically(kept, json.dumps(document).encode())
    return lineage


def _read(kept: Path, version: str) -> dict[str, Lineage] | None:
    try:
        document = json.loads(kept.read_bytes())
        if document["version"] != version:
            return None
        return {
            name: {
                column: [ColumnSource(*source) for source in sources]
                for column, sources in columns.items()
            }
            for name, columns in document["tables"].items()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None
