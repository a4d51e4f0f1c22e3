"""The way in: pull a dataset from wherever it is into the raw store."""

from collections.abc import Callable, Sequence
from pathlib import Path

from assets.traces.directory import pull_directory
from assets.traces.errors import DatasetError
from assets.traces.progress import PullProgress
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetSnapshot

SAMPLE = "sample"
SAMPLE_DIRECTORY = Path(__file__).parent / "sample"
"""The dataset that ships with the package; `sample` is its location's name."""


def pull(
    location: str,
    *,
    revision: str | None,
    authors: Sequence[str] | None,
    store: RawStore,
    with_tensors: bool = False,
    progress: Callable[[PullProgress], None] | None = None,
) -> DatasetSnapshot:
    """Bring the files of one dataset revision into the store and say what they are.

    `location` is `sample` or a directory. `authors` keeps only those authors' solutions and
    traces. Raises `DatasetError` with one line that says what to do.
    """
    if authors is not None and not authors:
        raise DatasetError("an authors filter must name at least one author")
    root = SAMPLE_DIRECTORY if location == SAMPLE else Path(location).expanduser()
    if not root.exists():
        raise DatasetError(f"{location}: no such dataset; name a directory that exists")
    return pull_directory(
        root,
        revision=revision,
        authors=authors,
        store=store,
        with_tensors=with_tensors,
        progress=progress,
    )
