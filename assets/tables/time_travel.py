"""The warehouse as it stood after an earlier publication.

`WarehouseAsOf` sees only publications up to one of them and has a database file of its own under
`as-of/`; what builds a database builds that one as well. The current database is never touched.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Publication, Warehouse

_FOLDER = "as-of"
_LOCK_TIMEOUT_S = 600
_KEPT_DATABASES = 5


class WarehouseAsOf(Warehouse):
    """A warehouse up to and including one publication; `variant` tells other builds apart."""

    def __init__(self, warehouse: Warehouse, publication_id: str, variant: str) -> None:
        super().__init__(warehouse.root)
        self.until = publication_id
        self.database = self.root / _FOLDER / f"{publication_id}-{variant}.duckdb"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of this database only: looking back waits for no ingestion.

        Raises:
            WarehouseError: another process builds it for too long, or the folder is not writable.
        """
        try:
            self.database.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.database}.lock", timeout=_LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise WarehouseError(
                f"{self.database}: another process has been building it for {_LOCK_TIMEOUT_S} s"
            ) from error
        except OSError as error:
            raise WarehouseError(
                f"{self.database}: cannot write here ({error.strerror}); --as-of needs a "
                "writable warehouse"
            ) from error

    def forget_others(self) -> None:
        """Remove all but the databases that were looked at last."""
        databases = sorted(
            self.database.parent.glob("*.duckdb"), key=lambda path: path.stat().st_mtime
        )
        for path in databases[:-_KEPT_DATABASES]:
            if path != self.database:
                path.unlink(missing_ok=True)
                path.with_name(f"{path.name}.lock").unlink(missing_ok=True)


def find_publication(warehouse: Warehouse, text: str) -> Publication:
    """A publication by its identifier, its beginning, or its number.

    Raises:
        WarehouseError: no such publication, or several.
    """
    records = warehouse.publications()
    if text.isdigit() and len(text) <= 8:
        found = [record for record in records if record.sequence == int(text)]
    else:
        found = [record for record in records if record.publication_id.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(record.publication_id for record in found[:5])
        raise WarehouseError(f"{text}: several publications begin like this: {names}")
    newest = records[-1].publication_id if records else "none"
    raise WarehouseError(
        f"{text}: no such publication; the newest is {newest}, `kernelindex revisions` lists them"
    )
