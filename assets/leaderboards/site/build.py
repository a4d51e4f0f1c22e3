"""Build the whole site from the tables as they stand, touching only what changed."""

import time
from dataclasses import dataclass
from pathlib import Path

from assets.leaderboards.site import addresses
from assets.leaderboards.site.artifacts import shown_artifacts, write_artifact_pages
from assets.leaderboards.site.authors import write_author_pages
from assets.leaderboards.site.folder import SiteFolder, Written
from assets.leaderboards.site.implementations import write_implementation_pages
from assets.leaderboards.site.index_reader import open_reader
from assets.leaderboards.site.operations import write_operation_pages
from assets.leaderboards.site.overview import (
    write_gpus,
    write_home,
    write_methodology,
    write_quarantine,
)
from assets.leaderboards.site.rendering import STATIC_FILES, Renderer, static_file
from assets.leaderboards.site.runs import write_run_pages
from assets.leaderboards.site.search_data import write_run_list, write_search
from assets.tables.warehouse import Warehouse

DEFAULT_FOLDER = "site"


@dataclass(frozen=True)
class SiteOutcome:
    """A built site: where its first page is, what was done to its files, and pages by kind."""

    home: Path
    files: Written
    pages: dict[str, int]
    seconds: float


def build_site(warehouse: Warehouse, output: Path | None = None) -> SiteOutcome:
    """Write the site of a warehouse into a folder (default: `site` inside the warehouse).

    Raises:
        SiteError: a folder that is no site and not empty, or that cannot be written.
        WarehouseError: nothing was ingested yet, or the database is damaged.
    """
    started = time.monotonic()
    root = output or warehouse.root / DEFAULT_FOLDER
    folder = SiteFolder(root)
    renderer = Renderer()
    with open_reader(warehouse) as reader:
        for name in STATIC_FILES:
            folder.write(name, static_file(name))
        shown = shown_artifacts(reader)
        pages = {
            "runs": write_run_pages(reader, renderer, folder, shown),
            "operations": write_operation_pages(reader, renderer, folder),
            "implementations": write_implementation_pages(reader, renderer, folder, shown),
            "authors": write_author_pages(reader, renderer, folder),
            "artifacts": write_artifact_pages(reader, renderer, folder),
        }
        write_run_list(reader, renderer, folder)
        write_search(reader, renderer, folder)
        write_gpus(reader, renderer, folder)
        write_quarantine(reader, renderer, folder)
        write_methodology(reader, renderer, folder)
        # Last: until the first page is there, nobody comes upon half of a new site.
        write_home(reader, renderer, folder)
    written = folder.finish(lambda address: renderer.page(address, "gone.html"))
    return SiteOutcome(root / addresses.HOME, written, pages, time.monotonic() - started)
