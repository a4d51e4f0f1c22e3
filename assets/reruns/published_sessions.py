"""Which session a result bundle is of: a new one, or one that was published before.

Looked up in the published Parquet files, which know more than a database that is yet to be built.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from assets.manifests.canonical import sha256_digest
from assets.reruns.bundles import ResultBundle
from assets.reruns.errors import ResultRefusedError
from assets.reruns.result_files import RESULT
from assets.reruns.worker.job import JobBundle
from assets.tables.database import create_published_view
from assets.tables.errors import WarehouseError
from assets.tables.warehouse import Warehouse
from assets.traces.layout import printable

# Seeds are drawn from 2^62 numbers: two sessions have none in common unless one is a copy.
_WITH_SAMPLES = """
    select distinct
        reproductions.session_id,
        runs.raw_timestamp,
        reproductions.bundle_id
    from published_rerun_samples as samples
    inner join published_reproductions as reproductions using (run_digest)
    inner join published_runs as runs using (run_digest)
    where samples.seed in (select unnest($seeds))
"""

# Without samples there is only the job, and that nothing of it was measured either time.
_WITHOUT_SAMPLES = """
    select distinct
        reproductions.session_id,
        runs.raw_timestamp,
        reproductions.bundle_id
    from published_reproductions as reproductions
    inner join published_runs as runs using (run_digest)
    where
        reproductions.bundle_id = $bundle_id
        and reproductions.session_id not in (
            select measured.session_id
            from published_reproductions as measured
            semi join published_rerun_samples using (run_digest)
        )
"""

_RUNS = "select run_digest from published_reproductions where session_id = $session_id"


@dataclass(frozen=True)
class SessionIdentity:
    """What names a session, and when it ended; for one that is published, as it was first."""

    session_id: str
    finished_at: datetime
    is_published: bool

    @property
    def revision(self) -> str:
        """The session as the revision of the rows that it brings."""
        return self.session_id[7:47]


def session_id_of(result_folder: Path) -> str:
    """The name of a session that is not published: the digest of its `result.json`."""
    return sha256_digest((result_folder / RESULT).read_bytes())


def identify(warehouse: Warehouse, bundle: JobBundle, result: ResultBundle) -> SessionIdentity:
    """The session of a result, which is known by its samples, whatever else was changed.

    Raises:
        ResultRefusedError: its samples are those of another job, or of several sessions.
        WarehouseError: what is published cannot be read.
    """
    seeds = sorted({sample.seed for sample in result.samples})
    if seeds:
        found = _rows(warehouse, _WITH_SAMPLES, {"seeds": seeds})
    else:
        found = _rows(warehouse, _WITHOUT_SAMPLES, {"bundle_id": bundle.bundle_id})
    if not found:
        return SessionIdentity(session_id_of(result.root), result.result.finished_at, False)
    sessions = sorted({str(session_id) for session_id, _, _ in found})
    if len(sessions) > 1 or {bundle_id for _, _, bundle_id in found} != {bundle.bundle_id}:
        raise ResultRefusedError(
            f"{result.root}/samples.jsonl holds samples of {', '.join(sessions)}, published before "
            "for another job; a measurement counts once"
        )
    return SessionIdentity(sessions[0], datetime.fromisoformat(str(found[0][1])), True)


def runs_of(warehouse: Warehouse, identity: SessionIdentity) -> set[str]:
    """The published runs of a session."""
    rows = _rows(warehouse, _RUNS, {"session_id": identity.session_id})
    return {str(run_digest) for (run_digest,) in rows}


def _rows(warehouse: Warehouse, query: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    try:
        with warehouse.connect() as connection:
            for table in ("rerun_samples", "reproductions", "runs"):
                create_published_view(connection, warehouse, table)
            return connection.execute(query, values).fetchall()
    except duckdb.Error as error:
        raise WarehouseError(
            f"{warehouse.root}: published reruns cannot be read ({printable(str(error))}); run "
            "`kernelindex doctor`"
        ) from error
