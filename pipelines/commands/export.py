"""`kernelindex export` and `verify-catalog`: the catalog as the public index exports it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.commands.index import Json, errors_as_lines, open_warehouse
from pipelines.commands.output import (
    ANSWER_IS_NO,
    add_row,
    fail,
    print_json,
    program,
    show,
    stdout,
    table,
)

if TYPE_CHECKING:
    # Reading every file under sql/ takes a while; only these commands need it.
    from assets.leaderboards.verify_catalog import CatalogVerification


def export(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="file to write; `.zst` compresses")
    ] = Path("kernelindex-export.jsonl.zst"),
    json: Json = False,
) -> None:
    """Write the catalog as {table, row} lines, in the form of the public index's export."""
    from assets.answers.export import export_catalog

    with errors_as_lines():
        counts = export_catalog(open_warehouse(), output)
    if json:
        print_json({"file": str(output), "rows": counts})
        return
    made = table([("table", "left"), ("rows", "right")])
    for name, rows in counts.items():
        add_row(made, name, f"{rows:,}")
    stdout.print(made)
    show(f"written to {output}")
    show(f"{program()} verify-catalog {output}  recomputes every digest in it")


def verify(
    file: Annotated[Path, typer.Argument(help="a catalog export, .jsonl or .jsonl.zst")],
    json: Json = False,
) -> None:
    """Recompute every digest, key, rank and record of a downloaded export."""
    from assets.leaderboards.catalog_export import CatalogExportError
    from assets.leaderboards.verify_catalog import render, verify_catalog

    if not file.is_file():
        fail(f"{file}: no such file")
    try:
        result = verify_catalog(file)
    except CatalogExportError as error:
        fail(str(error))
    if json:
        print_json(_as_json(result))
    else:
        stdout.print(render(result))
    if not result.is_equal:
        raise typer.Exit(ANSWER_IS_NO)


def _as_json(result: "CatalogVerification") -> dict[str, object]:
    return {
        "file": str(result.path),
        "equal": result.is_equal,
        "rows": dict(result.rows),
        "comparisons": [asdict(comparison) for comparison in result.comparisons],
        "mistakes": [asdict(mistake) for mistake in result.mistakes],
    }
