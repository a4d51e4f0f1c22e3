"""The controlled reruns that ship with the sample: a real session on an H200, imported like any.

`sample/*.tar.xz` hold the folders `bundle` and `result` as `kernelindex rerun bundle` and the
worker wrote them, and go through the same checks as every other result. Nothing here can start a
worker.
"""

import json
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import duckdb

from assets.leaderboards.index import build_if_needed
from assets.reruns.errors import ResultRefusedError
from assets.reruns.published_sessions import session_id_of
from assets.reruns.results import Imported, import_result
from assets.tables.database import create_published_view
from assets.tables.reader import open_database
from assets.tables.warehouse import Warehouse
from assets.traces.archive import UNREADABLE
from assets.traces.layout import path_fault, printable
from assets.traces.pull import SAMPLE_DIRECTORY

SAMPLE_RUNNER = "kernelindex-sample"
SAMPLE_DATASET: str = json.loads((SAMPLE_DIRECTORY / "dataset.json").read_bytes())["id"]
"""The name under which the runs of the sample are published."""
ARCHIVES = tuple(
    sorted(Path(str(resources.files("assets.reruns").joinpath("sample"))).glob("*.tar.xz"))
)


def import_sample_results(warehouse: Warehouse) -> list[Imported]:
    """Publish the shipped results that are not, once all runs that they reproduce are.

    Importing needs the database of what is published, so that is built before where it is older;
    it is not built after.

    Raises:
        ResultRefusedError: an archive is damaged, or the sample is not what was measured.
        WarehouseError: the warehouse cannot be read or written.
    """
    found: list[Imported] = []
    for archive in ARCHIVES:
        with _unpacked(archive) as folder:
            if _is_due(warehouse, folder):
                build_if_needed(warehouse)
                if not _is_possible(warehouse, folder):
                    continue
                found.append(
                    import_result(warehouse, folder / "bundle", folder / "result", SAMPLE_RUNNER)
                )
    return found


def _is_due(warehouse: Warehouse, folder: Path) -> bool:
    try:
        revision = session_id_of(folder / "result")[7:47]
        wanted = _reproduced(folder)
    except (OSError, ValueError) as error:
        raise ResultRefusedError(
            f"a result that ships with the sample is damaged: {error}"
        ) from error
    if any(record.revision == revision for record in warehouse.publications()):
        return False
    with warehouse.connect() as connection:
        create_published_view(connection, warehouse, "runs")
        return _are_all_in(connection, "published_runs", wanted)


def _is_possible(warehouse: Warehouse, folder: Path) -> bool:
    """Whether the index has the runs: it is built without what rests on a publication set aside."""
    with open_database(warehouse.root) as connection:
        return _are_all_in(connection, "runs", _reproduced(folder))


def _reproduced(folder: Path) -> list[str]:
    bundle = json.loads((folder / "bundle" / "bundle.json").read_bytes())
    return sorted({item["reproduces"] for item in bundle["items"]})


def _are_all_in(connection: duckdb.DuckDBPyConnection, table: str, wanted: Sequence[str]) -> bool:
    runs = connection.table(table).filter(
        duckdb.ColumnExpression("run_digest").isin(*map(duckdb.ConstantExpression, wanted))
    )
    return len(runs.project("run_digest").distinct().fetchall()) == len(wanted)


@contextmanager
def _unpacked(archive: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kernelindex-sample-") as name:
        folder = Path(name)
        unpack(archive, folder)
        yield folder


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive of results below a folder.

    Only plain files and folders at plain places are written, each once, whatever the version of
    Python: its own protection (`filter="data"`) is younger than 3.11.

    Raises:
        ResultRefusedError: a damaged archive, a link, a device, a path that leads elsewhere.
    """
    try:
        with tarfile.open(archive, "r:*") as stream:
            for member in stream:
                _unpack_member(stream, member, archive, folder)
    except (*UNREADABLE, lzma.LZMAError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise ResultRefusedError(f"{archive}: cannot be unpacked ({text})") from error


def _unpack_member(
    stream: tarfile.TarFile, member: tarfile.TarInfo, archive: Path, folder: Path
) -> None:
    name = member.name.removeprefix("./")
    if member.isdir() and name in ("", "."):
        return
    fault = path_fault(name)
    if fault is None and not (member.isreg() or member.isdir()):
        fault = "is no plain file"
    if fault is None and member.isreg() and (folder / name).exists():
        fault = "is in the archive more than once"
    if fault is not None:
        raise ResultRefusedError(f"{archive}: the path {printable(name)} {fault}")
    target = folder / name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = stream.extractfile(member)
    if source is not None:
        with source, target.open("xb") as written:
            shutil.copyfileobj(source, written)
