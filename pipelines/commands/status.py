"""`kernelindex status` and `revisions`: what the index holds, and what brought it."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from assets.answers.units import size_text, time_text
from assets.answers.values import json_value
from assets.tables.revision_files import FileChanges, file_changes
from assets.tables.set_aside import SetAside, set_aside
from assets.tables.warehouse import GENESIS, Publication, Warehouse
from pipelines.commands.aside import line_of, way_back
from pipelines.commands.index import Json, errors_as_lines, open_index, open_warehouse
from pipelines.commands.output import add_row, print_json, program, show, stdout, table

_COUNTED = (
    "runs",
    "ranked_runs",
    "implementations",
    "operations",
    "workloads",
    "environments",
    "projects",
    "corrections",
    "quarantine",
)


def status(json: Json = False) -> None:
    """Say what the index holds, how fresh it is and where it lies."""
    with errors_as_lines():
        warehouse = open_warehouse()
        records = _records(warehouse)
        aside = set_aside(warehouse)
    with open_index() as connection:
        rows = {
            name: int(connection.execute(f"select count(*) from {name}").fetchall()[0][0])
            for name in _COUNTED
        }
        built_from = connection.execute("select max(publication_id) from publications").fetchall()
        datasets = connection.execute(
            "select dataset, count(distinct revision), max(revision_at) from revisions "
            "group by dataset order by dataset"
        ).fetchall()
        devices = [
            name
            for (name,) in connection.execute(
                "select distinct gpu_product from environments order by all"
            ).fetchall()
        ]
        left_out = _left_out(connection)
    newest = records[-1] if records else None
    used = [record.publication_id for record in records if record.publication_id not in aside]
    stale = bool(used) and built_from[0][0] != used[-1]
    generation = warehouse.generation()
    report: dict[str, Any] = {
        "warehouse": str(warehouse.root),
        "database": str(warehouse.database),
        "database_size_bytes": warehouse.database.stat().st_size,
        "publications": len(records),
        "newest_publication": newest.publication_id if newest else None,
        "generation": generation.number if generation else None,
        "database_is_current": not stale,
        "set_aside": [
            {
                "publication": entry.publication_id,
                "since": json_value(entry.at),
                "statement": entry.statement,
                "error": entry.error,
            }
            for entry in aside.values()
        ],
        "left_out": left_out,
        "rows": rows,
        "datasets": [
            {"dataset": name, "revisions": number, "newest_revision_at": json_value(at)}
            for name, number, at in datasets
        ],
        "devices": devices,
        "publications_size_bytes": _size_of(
            warehouse.publications_folder, warehouse.generations_folder
        ),
        "free_bytes": shutil.disk_usage(warehouse.root).free,
    }
    if json:
        print_json(report)
    else:
        _print_status(report, newest, list(aside.values()))


def _left_out(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many runs, and rows of all kinds, are published and not in the index."""
    tables = connection.execute("select table_name from duckdb_tables()").fetchall()
    if ("left_out",) not in tables:
        return {"runs": 0, "rows": 0}  # A database of an older version; doctor says so.
    [(runs, rows)] = connection.execute(
        "select coalesce(sum(left_out_runs), 0), coalesce(sum(left_out_rows), 0) from left_out"
    ).fetchall()
    return {"runs": int(runs), "rows": int(rows)}


def _print_status(
    report: dict[str, Any], newest: Publication | None, aside: list[SetAside]
) -> None:
    rows = report["rows"]
    show(f"{rows['runs']:,} runs, {rows['ranked_runs']:,} of them ranked", "bold")
    show(
        f"{rows['implementations']:,} implementations of {rows['operations']:,} operations on "
        f"{rows['workloads']:,} workloads"
    )
    show(f"devices: {', '.join(report['devices']) or 'none'}")
    if rows["quarantine"]:
        show(f"{rows['quarantine']:,} items in quarantine: {program()} quarantine")
    else:
        show("nothing in quarantine")
    if rows["corrections"]:
        show(f"{rows['corrections']:,} corrections")
    for item in report["datasets"]:
        at = (item["newest_revision_at"] or "unknown")[:10]
        number = item["revisions"]
        show(f"dataset {item['dataset']}: {number} revision{'s' * (number != 1)}, newest of {at}")
    if newest is not None:
        show(
            f"publications: {report['publications']}, the newest {newest.publication_id} "
            f"({time_text(newest.published_at)})"
        )
    for entry in aside:
        show(line_of(entry), "red")
        show(f"  {way_back(entry)}")
    if aside:
        left_out = report["left_out"]
        show(
            f"left out with {'it' if len(aside) == 1 else 'them'}, and with what rests on "
            f"{'it' if len(aside) == 1 else 'them'}: {left_out['runs']:,} runs, "
            f"{left_out['rows']:,} rows of all kinds"
        )
    if not report["database_is_current"]:
        show(f"the database is older than the newest publication: {program()} doctor --repair")
    show(
        f"data: {report['warehouse']} ({size_text(report['publications_size_bytes'])} of Parquet, "
        f"{size_text(report['database_size_bytes'])} of database, "
        f"{size_text(report['free_bytes'])} free)"
    )


def revisions(json: Json = False) -> None:
    """List every publication: of what, when, and what it brought."""
    with errors_as_lines():
        warehouse = open_warehouse()
        records = _records(warehouse)
        changes = file_changes(warehouse)
    if json:
        print_json([_brought(record, changes.get(record.snapshot_id)) for record in records])
        return
    made = table(
        [
            ("#", "right"),
            ("published", "left"),
            ("kind", "left"),
            ("dataset", "fold"),
            ("revision", "left"),
            ("runs", "right"),
            ("impl.", "right"),
            ("quar.", "right"),
            ("files", "left"),
        ]
    )
    for record in records:
        counts = [
            record.tables[name].rows if name in record.tables else 0
            for name in ("runs", "implementations", "quarantine")
        ]
        add_row(
            made,
            record.sequence,
            f"{record.published_at:%Y-%m-%d %H:%M}",
            record.kind,
            record.dataset or "",
            (record.revision or "")[:8],
            *counts,
            str(changes.get(record.snapshot_id, "")),
        )
    stdout.print(made)
    show("`--as-of #` answers as the index stood then; --json gives the full identifiers")


def _brought(record: Publication, files: FileChanges | None) -> dict[str, object]:
    return {
        "publication": record.publication_id,
        "published_at": json_value(record.published_at),
        "kind": record.kind,
        "dataset": record.dataset,
        "revision": record.revision,
        "files": asdict(files) if files else None,
        "rows": {name: file.rows for name, file in sorted(record.tables.items())},
    }


def _records(warehouse: Warehouse) -> list[Publication]:
    return [record for record in warehouse.publications() if record.publication_id != GENESIS]


def _size_of(*folders: Path) -> int:
    return sum(
        path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file()
    )
