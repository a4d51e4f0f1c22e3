"""Any damage to any file of a dataset ends in quarantine or in one line, never in a traceback."""

import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.manifests.normalize import Known, normalize
from assets.traces.errors import DatasetError
from assets.traces.pull import pull
from assets.traces.raw_store import RawStore
from tests.builders import (
    DEFINITION_FILE,
    SOLUTION_FILE,
    TRACE_FILE,
    WORKLOAD_FILE,
    Json,
    dataset,
    definition,
    solution,
    trace,
    workload_row,
)
from tests.damage import damaged_bytes, damaged_json

IDENTITY = "dataset.json"
FILES: dict[str, Json] = {
    DEFINITION_FILE: definition(),
    SOLUTION_FILE: solution(),
    TRACE_FILE: trace(evaluation__correctness__extra={"a": [1, None]}),
    WORKLOAD_FILE: workload_row(),
    IDENTITY: {"id": "own/data", "title": "Own", "url": "https://data.example"},
}


def variants(path: str, count: int) -> Iterator[tuple[str, bytes]]:
    document = FILES[path]
    yield from damaged_bytes(json.dumps(document, indent=1).encode(), count // 2)
    yield from damaged_json(document, count // 2)


def check(location: Path, root: Path, name: str) -> None:
    """Read a dataset; what cannot be read at all is one line."""
    store = RawStore(root / "raw")
    try:
        snapshot = pull(str(location), revision=None, authors=None, store=store)
        normalize(snapshot, store, root / "rows", Known(), processes=1)
    except DatasetError as error:
        assert "\n" not in str(error), name  # noqa: PT017
    except Exception as error:
        error.add_note(f"the variant: {name}")
        raise


def feed(path: str, tmp_path: Path, count: int) -> None:
    root = dataset(tmp_path / "dataset", workloads=[workload_row()])
    for number, (name, data) in enumerate(variants(path, count)):
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        check(root, tmp_path / str(number), f"{path} {name}")


@pytest.mark.parametrize("path", FILES)
def test_some_damage_is_quarantined_or_refused_in_one_line(path: str, tmp_path: Path) -> None:
    feed(path, tmp_path, 16)


@pytest.mark.integration
@pytest.mark.parametrize("path", FILES)
def test_any_damage_is_quarantined_or_refused_in_one_line(path: str, tmp_path: Path) -> None:
    feed(path, tmp_path, 120)


@pytest.mark.integration
@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_a_damaged_archive_is_read_or_refused_in_one_line(ending: str, tmp_path: Path) -> None:
    root = dataset(tmp_path / "dataset")
    packed = tmp_path / f"packed{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(packed, "w") as archive:
            for file in sorted(root.rglob("*.json*")):
                archive.write(file, file.relative_to(root))
    else:
        with tarfile.open(packed, "w:gz") as stream:
            stream.add(root, "data")
    for number, (name, data) in enumerate(damaged_bytes(packed.read_bytes(), 100)):
        file = tmp_path / f"damaged{ending}"
        file.write_bytes(data)
        check(file, tmp_path / str(number), name)
