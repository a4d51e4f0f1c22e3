"""The way in: pull a dataset from wherever it is into the raw store."""

import os
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from assets.traces.archive import is_archive, pull_archive
from assets.traces.directory import pull_directory
from assets.traces.errors import DatasetError
from assets.traces.hub import pull_hub
from assets.traces.hub_location import is_hub_location, parse_hub_location
from assets.traces.hub_settings import HubSettings
from assets.traces.identity import stated_identity
from assets.traces.progress import PullProgress
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile, DatasetSnapshot

SAMPLE = "sample"
SAMPLE_DIRECTORY = Path(str(resources.files("assets.traces").joinpath("sample")))
"""The dataset that ships with the package; `sample` is its location's name."""


def pull(
    location: str,
    *,
    revision: str | None,
    authors: Sequence[str] | None,
    store: RawStore,
    name: str | None = None,
    with_tensors: bool = False,
    progress: Callable[[PullProgress], None] | None = None,
) -> DatasetSnapshot:
    """Bring the files of one dataset revision into the store and say what they are.

    `location` is `hf://datasets/OWNER/NAME[@REVISION]`, `sample`, a directory (plain, a git clone
    or an entry of the hub client's cache), or a `.tar.gz`, `.tgz` or `.zip` file. `authors` keeps
    only those authors' solutions and traces. `name` says which dataset a local copy is, whatever
    the copy says: `OWNER/NAME`, or `hf://datasets/OWNER/NAME`. Raises `DatasetError` with one line
    that says what to do; its subclass `TransientDatasetError` means that the same pull may work
    later.
    """
    if authors is not None and not authors:
        raise DatasetError("an authors filter must name at least one author")
    identity = None if name is None else stated_identity(name)
    if is_hub_location(location):
        if identity is not None:
            raise DatasetError(f"{location}: a dataset of the hub has its name already; give none")
        return pull_hub(
            parse_hub_location(location, revision),
            authors=authors,
            store=store,
            settings=HubSettings.from_environment(os.environ),
            with_tensors=with_tensors,
            progress=progress,
        )
    path = SAMPLE_DIRECTORY if location == SAMPLE else Path(location).expanduser()
    if not path.exists():
        raise DatasetError(
            f"{location}: no such dataset; name a directory or archive that exists, or "
            "hf://datasets/OWNER/NAME"
        )
    if path.is_file() and not is_archive(path):
        raise DatasetError(f"{location}: not a directory, .tar.gz, .tgz or .zip")
    read = pull_archive if path.is_file() else pull_directory
    return read(
        path,
        location=location,
        revision=revision,
        authors=authors,
        store=store,
        identity=identity,
        with_tensors=with_tensors,
        progress=progress,
    )


def missing_files(snapshot: DatasetSnapshot, store: RawStore) -> list[DatasetFile]:
    """Files of a snapshot whose bytes the store lacks: none means it can be replayed."""
    return [file for file in snapshot.files if not store.has(file.digest)]
