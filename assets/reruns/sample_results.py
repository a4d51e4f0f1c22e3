"""The controlled reruns that ship with the sample: a real session on an H200, imported like any.

`sample/*.tar.xz` hold the folders `bundle` and `result` as `kernelindex rerun bundle` and the
worker wrote them, and go through the same checks as every other result.
"""

import tarfile
import tempfile
from importlib import resources
from pathlib import Path

from assets.leaderboards.build import build_database
from assets.reruns.errors import ResultRefusedError
from assets.reruns.results import Imported, import_result
from assets.tables.warehouse import Warehouse

SAMPLE_RUNNER = "kernelindex-sample"
ARCHIVES = tuple(
    sorted(Path(str(resources.files("assets.reruns").joinpath("sample"))).glob("*.tar.xz"))
)


def import_sample_results(warehouse: Warehouse) -> list[Imported]:
    """Publish the shipped results, and rebuild the database where that brought anything.

    Raises:
        ResultRefusedError: an archive is damaged, or the sample is not what was measured.
        WarehouseError: the warehouse cannot be read or written.
    """
    found = [_import(warehouse, archive) for archive in ARCHIVES]
    if any(imported.publication is not None for imported in found):
        build_database(warehouse)
    return found


def _import(warehouse: Warehouse, archive: Path) -> Imported:
    with tempfile.TemporaryDirectory(prefix="kernelindex-sample-") as name:
        folder = Path(name)
        try:
            with tarfile.open(archive, "r:xz") as stream:
                stream.extractall(folder, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise ResultRefusedError(f"{archive}: cannot be unpacked ({error})") from error
        return import_result(warehouse, folder / "bundle", folder / "result", SAMPLE_RUNNER)
