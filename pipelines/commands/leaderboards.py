"""Leaderboards as tables in the terminal."""

from rich.table import Table

from assets.tables.reader import open_database
from pipelines.commands.output import stdout
from pipelines.settings import Settings

_SHOWN = ("leaderboard_authors", "leaderboard_operations")
_ROWS = 15


def print_leaderboards(settings: Settings) -> None:
    """The first rows of the leaderboards."""
    with open_database(settings.warehouse) as database:
        for name in _SHOWN:
            relation = database.table(name).limit(_ROWS)
            table = Table(title=name, title_justify="left")
            for column in relation.columns:
                table.add_column(column, overflow="fold")
            for row in relation.fetchall():
                table.add_row(*(_cell(value) for value in row))
            stdout.print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
