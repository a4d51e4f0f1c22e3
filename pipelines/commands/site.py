"""`kernelindex site`: pages made from the tables, to look at or to publish."""

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assets.answers.units import count_text, size_text
from pipelines.commands.index import Json, errors_as_lines, open_warehouse
from pipelines.commands.output import print_json, show

if TYPE_CHECKING:
    # Templates take a while to load; only this command needs them.
    from assets.leaderboards.site.build import SiteOutcome


def site(
    open_in_browser: Annotated[
        bool, typer.Option("--open", help="open the first page in a browser")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="folder to write; default: site in the warehouse"),
    ] = None,
    json: Json = False,
) -> None:
    """Write the index as a static site; pages that would not change are not touched."""
    from assets.leaderboards.site.build import build_site

    with errors_as_lines():
        outcome = build_site(open_warehouse(), output.resolve() if output else None)
    if json:
        print_json(_as_json(outcome))
    else:
        _print(outcome)
    if open_in_browser:
        webbrowser.open(outcome.home.as_uri())


def _print(outcome: "SiteOutcome") -> None:
    pages = ", ".join(f"{number:,} {kind}" for kind, number in outcome.pages.items())
    files = outcome.files
    show(f"{pages}: {count_text(files.files, 'file')}, {size_text(files.size_bytes)}")
    show(
        f"{files.written:,} written, {files.unchanged:,} unchanged, {files.removed:,} gone, "
        f"in {outcome.seconds:.1f} s"
    )
    show(str(outcome.home))


def _as_json(outcome: "SiteOutcome") -> dict[str, object]:
    return {
        "home": str(outcome.home),
        "pages": outcome.pages,
        "files": outcome.files.files,
        "written": outcome.files.written,
        "unchanged": outcome.files.unchanged,
        "gone": outcome.files.removed,
        "size_bytes": outcome.files.size_bytes,
        "seconds": outcome.seconds,
    }
