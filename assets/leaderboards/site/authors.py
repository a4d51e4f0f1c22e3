"""The pages of authors: coverage, correctness, wins and the fast_p curve, always together."""

from assets.answers.values import json_value
from assets.leaderboards.site import addresses
from assets.leaderboards.site.figures import Figure, fast_p
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader, Row, grouped
from assets.leaderboards.site.rendering import Renderer, data_json

_BOARD = """
    select leaderboard_authors.*, upstream.score as upstream_score
    from leaderboard_authors
    left join leaderboard_authors_upstream as upstream
        on
            upstream.gpu_product = leaderboard_authors.gpu_product
            and upstream.author = leaderboard_authors.author
            and leaderboard_authors.family = 'all'
    order by
        leaderboard_authors.gpu_product,
        leaderboard_authors.family <> 'all',
        leaderboard_authors.family,
        leaderboard_authors.wins desc,
        leaderboard_authors.groups_passed desc,
        leaderboard_authors.author
"""

_CURVES = "from fast_p_curves where family = 'all' order by gpu_product, author, p"

_SOLUTIONS = """
    select *
    from leaderboard_solutions
    order by gpu_product, wins desc, groups_passed desc, operation, solution
"""

_STATUSES = """
    select author_directory as author, status, count(*) as runs, min(run_digest) as run_digest
    from runs
    group by all
    order by author, runs desc, status
"""


def write_author_pages(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> int:
    """Write the list of authors and the page of each."""
    board = reader.rows(_BOARD)
    curves = grouped(reader.rows(_CURVES), "gpu_product")
    by_author = grouped(board, "author")
    solutions = grouped(reader.rows(_SOLUTIONS), "author")
    statuses = grouped(reader.rows(_STATUSES), "author")
    for author, rows in by_author.items():
        address = addresses.author(author)
        figures = _figures(curves, author)
        _write_figures(folder, address, figures)
        folder.write(
            addresses.beside(address, ".json"),
            data_json({"author": author, "leaderboard": json_value(rows)}),
        )
        folder.write(
            address,
            renderer.page(
                address,
                "author.html",
                author=author,
                board=rows,
                figures=figures,
                solutions=solutions.get(author, []),
                statuses=statuses.get(author, []),
            ),
        )
    figures = _figures(curves)
    _write_figures(folder, addresses.AUTHORS, figures)
    overall = [row for row in board if row["family"] == "all"]
    folder.write(
        addresses.AUTHORS,
        renderer.page(
            addresses.AUTHORS,
            "authors.html",
            board=grouped(overall, "gpu_product"),
            figures=figures,
        ),
    )
    return len(by_author)


def author_figures(reader: IndexReader) -> list[Figure]:
    """The fast_p curves of all authors, one figure for each device."""
    return _figures(grouped(reader.rows(_CURVES), "gpu_product"))


def _figures(curves: dict[str, list[Row]], author: str | None = None) -> list[Figure]:
    figures = []
    for gpu_product, rows in curves.items():
        by_author = grouped(rows, "author")
        if author is not None:
            by_author = {author: by_author[author]} if author in by_author else {}
        figure = fast_p(f"fast-p-{addresses.named(gpu_product)}", gpu_product, by_author)
        if figure is not None:
            figures.append(figure)
    return figures


def _write_figures(folder: SiteFolder, page: str, figures: list[Figure]) -> None:
    for figure in figures:
        folder.write(addresses.beside(page, f"-{figure.name}.csv"), figure.csv())
        folder.write(addresses.beside(page, f"-{figure.name}.json"), figure.json())
