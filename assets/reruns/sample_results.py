"""The controlled reruns that ship with the sample: a real session on an H200, imported like any.

`sample/*.tar.xz` hold the folders `bundle` and `result` as `kernelindex rerun bundle` and the
worker wrote them, and go through the same checks as every other result. Nothing here can start a
worker.
"""

import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from assets.leaderboards.build import build_database
from assets.leaderboards.reproduction import examine_database
from assets.reruns.errors import ResultRefusedError
from assets.reruns.published_sessions import session_id_of
from assets.reruns.results import Imported, import_result
from assets.tables.database import create_published_view
from assets.tables.warehouse import Warehouse
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
                if examine_database(warehouse, rebuild=False).findings:
                    build_database(warehouse)
                found.append(
                    import_result(warehouse, folder / "bundle", folder / "result", SAMPLE_RUNNER)
                )
    return found


def _is_due(warehouse: Warehouse, folder: Path) -> bool:
    try:
        revision = session_id_of(folder / "result")[7:47]
        bundle = json.loads((folder / "bundle" / "bundle.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ResultRefusedError(
            f"a result that ships with the sample is damaged: {error}"
        ) from error
    if any(record.revision == revision for record in warehouse.publications()):
        return False
    wanted = sorted({item["reproduces"] for item in bundle["items"]})
    with warehouse.connect() as connection:
        create_published_view(connection, warehouse, "runs")
        [(here,)] = connection.execute(
            "select count(distinct run_digest) from published_runs "
            "where list_contains($wanted, run_digest)",
            {"wanted": wanted},
        ).fetchall()
    return bool(here == len(wanted))


@contextmanager
def _unpacked(archive: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kernelindex-sample-") as name:
        folder = Path(name)
        try:
            with tarfile.open(archive, "r:xz") as stream:
                stream.extractall(folder, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise ResultRefusedError(f"{archive}: cannot be unpacked ({error})") from error
        yield folder
