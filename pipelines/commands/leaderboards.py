"""The two leaderboards of the ingestion summary, in columns that fit 80 characters."""

import duckdb
from rich.table import Table

from assets.answers.units import ratio_text
from assets.tables.reader import open_database
from pipelines.commands.output import add_row, stdout, table
from pipelines.settings import Settings

_ROWS = 8


def print_leaderboards(settings: Settings) -> None:
    """The first rows of the leaderboards of authors and operations."""
    with open_database(settings.warehouse) as database:
        stdout.print(_authors(database), "")
        stdout.print(_operations(database), "")


def _authors(database: duckdb.DuckDBPyConnection) -> Table:
    made = table(
        [
            ("GPU", "cut"),
            ("author", "cut"),
            ("wins", "right"),
            ("groups", "right"),
            ("passed runs", "right"),
            ("vs baseline", "right"),
        ],
        title="Authors (over all operations)",
    )
    rows = database.execute(
        """
        select gpu_product, author, wins, groups_attempted, groups_available, runs_passed,
            runs_attempted, speedup_over_baseline
        from leaderboard_authors
        where family = 'all'
        order by wins desc, gpu_product, author
        limit $rows
        """,
        {"rows": _ROWS},
    ).fetchall()
    for gpu, author, wins, attempted, available, passed, tried, speedup in rows:
        add_row(
            made,
            gpu,
            author,
            wins,
            f"{attempted}/{available}",
            f"{passed}/{tried}",
            ratio_text(speedup),
        )
    return made


def _operations(database: duckdb.DuckDBPyConnection) -> Table:
    made = table(
        [
            ("operation", "cut"),
            ("GPU", "cut"),
            ("groups", "right"),
            ("passed impl.", "right"),
            ("most wins", "cut"),
        ],
        title="Operations",
    )
    rows = database.execute(
        """
        select operation, gpu_product, comparison_groups, implementations_passed,
            implementations_tried, most_wins_author, most_wins
        from leaderboard_operations
        order by runs_eligible desc, operation, gpu_product
        limit $rows
        """,
        {"rows": _ROWS},
    ).fetchall()
    for operation, gpu, groups, passed, tried, author, wins in rows:
        add_row(
            made,
            operation,
            gpu,
            groups,
            f"{passed}/{tried}",
            f"{author} ({wins})" if author else "",
        )
    return made
