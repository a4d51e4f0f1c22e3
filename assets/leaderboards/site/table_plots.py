"""The site's plots beside the tables that they are made from, as pictures that stand alone.

The Dagster UI shows Markdown whose pictures are data addresses, so a picture brings the site's
style sheet and its legend with it. What the plots show is decided in `figures.py`.
"""

import base64
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from assets.leaderboards.site.authors import author_figures
from assets.leaderboards.site.figures import Figure
from assets.leaderboards.site.index_reader import IndexReader, open_reader
from assets.leaderboards.site.operations import operation_figures
from assets.leaderboards.site.rendering import STYLE_SHEET, static_file
from assets.leaderboards.site.svg import HEIGHT, WIDTH, mark
from assets.tables.warehouse import Warehouse
from assets.traces.untrusted_text import markdown as plain

# Of hundreds of operations, those whose plots have the most to show.
_SHOWN_OPERATIONS = 3
_LEGEND_LINE = 20
_LEGEND_LEFT = 84
_LEGEND_LENGTH = 90

_MOST_COMPARED = """
    select operations.*
    from operations
    inner join leaderboard_operations using (operation_digest)
    group by all
    order by
        max(leaderboard_operations.comparison_groups) desc,
        sum(leaderboard_operations.runs)::bigint desc,
        operations.operation_digest
    limit $shown
"""


def table_plots(warehouse: Warehouse) -> Mapping[str, str]:
    """Markdown with the plots of a table, by the table's name; none where there is nothing to plot.

    Raises:
        WarehouseError: nothing was ingested yet, or the database is damaged.
    """
    with open_reader(warehouse) as reader:
        sizes, histories = _of_operations(reader)
        found = {
            "fast_p_curves": author_figures(reader),
            "leaderboard_operations": sizes,
            "record_events": histories,
        }
    return {table: markdown(figures) for table, figures in found.items() if figures}


def markdown(figures: Sequence[Figure]) -> str:
    """Each figure as a picture with its title, and below it what it shows."""
    return "\n\n".join(
        f"**{plain(figure.title)}**\n\n![{plain(figure.title)}]({data_address(figure)})\n\n"
        f"{plain(figure.caption)}"
        for figure in figures
    )


def data_address(figure: Figure) -> str:
    """A `data:` address of the figure as an SVG file."""
    return f"data:image/svg+xml;base64,{base64.b64encode(alone(figure).encode()).decode()}"


def alone(figure: Figure) -> str:
    """The figure as an SVG file that needs nothing else: with colours, ground and legend."""
    names = [name for _, name in figure.legend] if len(figure.legend) > 1 else []
    height = HEIGHT + _LEGEND_LINE * len(names)
    legend = Markup("").join(
        Markup('{mark}<text x="{x}" y="{y}">{name}</text>').format(
            mark=mark(number, _LEGEND_LEFT, HEIGHT + number * _LEGEND_LINE + 8),
            x=_LEGEND_LEFT + 14,
            y=HEIGHT + number * _LEGEND_LINE + 12,
            name=name if len(name) <= _LEGEND_LENGTH else f"{name[: _LEGEND_LENGTH - 1]}…",
        )
        for number, name in enumerate(names)
    )
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            'viewBox="0 0 {width} {height}"><style>{style}</style>'
            '<rect width="100%" height="100%" fill="var(--raised)"/>'
            '<svg class="plot" width="{width}" height="{plot_height}">{image}</svg>'
            '<g class="plot">{legend}</g></svg>'
        ).format(
            width=WIDTH,
            height=height,
            plot_height=HEIGHT,
            style=static_file(STYLE_SHEET),
            image=figure.image,
            legend=legend,
        )
    )


def _of_operations(reader: IndexReader) -> tuple[list[Figure], list[Figure]]:
    sizes: list[Figure] = []
    histories: list[Figure] = []
    for operation in reader.rows(_MOST_COMPARED, {"shown": _SHOWN_OPERATIONS}):
        by_size, over_time = operation_figures(reader, operation)
        sizes += by_size
        histories += over_time
    return sizes, histories
