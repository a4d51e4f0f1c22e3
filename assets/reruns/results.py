"""A result bundle is imported: proven, told apart from what is known, and published.

Publishing the same result again publishes nothing. A trial, measured on a CPU or with parameters
that are not the protocol's, is shown to who made it and published nowhere.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assets.reruns.bundles import BundleError, printable_line, read_bundle, read_result
from assets.reruns.errors import ResultRefusedError
from assets.reruns.published_sessions import identify, runs_of
from assets.reruns.result_rows import ImportedRun, ResultRows
from assets.reruns.selection import RERUN_SOURCE
from assets.reruns.verdicts import Unverified
from assets.tables.publication import PublicationRequest, publish
from assets.tables.reader import open_database
from assets.tables.warehouse import Publication, Warehouse

PUBLICATION_KIND = "rerun"


@dataclass(frozen=True)
class Imported:
    """What came of one result bundle; `publication` is None where everything was known.

    `unscored` are items without a score (cancelled, infrastructure), with why; `fault` is what
    broke the session, None where it came to its end. `trial` is why nothing of it is published,
    ever; empty for what is more than a trial.
    """

    publication: Publication | None
    runs: tuple[ImportedRun, ...]
    unscored: tuple[str, ...]
    clean: bool
    fault: str | None
    trial: tuple[Unverified, ...] = ()

    @property
    def has_score(self) -> bool:
        """Whether anything was measured that can be shown, now or before."""
        return bool(self.runs)


def import_result(
    warehouse: Warehouse, bundle_folder: Path, result_folder: Path, runner: str | None = None
) -> Imported:
    """Prove a result bundle against its job bundle and publish it, unless it is a trial.

    `runner` names who measured; runs are replicated only across different names. The database is
    not rebuilt here.

    Raises:
        ResultRefusedError: the bundles are damaged, do not belong together, claim what does not
            follow from their samples, were published before with other content, or name runs or
            documents that are not published here; nothing was published.
        WarehouseError: the warehouse cannot be read or written.
    """
    try:
        bundle = read_bundle(bundle_folder)
        result = read_result(result_folder, bundle)
        identity = identify(warehouse, bundle, result)
        with open_database(warehouse.root) as connection:
            rows = ResultRows(bundle, result, connection, runner, identity)
            rows.add_all()
    except (BundleError, ResultRefusedError) as error:
        raise ResultRefusedError(printable_line(str(error))) from error
    record = None
    if identity.is_published:
        others = {run.run_digest for run in rows.imported} - runs_of(warehouse, identity)
        if others:
            raise ResultRefusedError(
                f"{result_folder}: its samples were published before, by session "
                f"{identity.session_id}, with other content; a result counts once, as it was first"
            )
    elif not rows.trial:
        record = _publish(warehouse, rows, identity.session_id)
    fault = result.result.error
    return Imported(
        publication=record,
        runs=tuple(rows.imported),
        unscored=tuple(rows.unscored),
        clean=result.result.calibration.clean,
        # Of a traceback, the line that says what it was.
        fault=fault.strip().splitlines()[-1] if fault and fault.strip() else None,
        trial=rows.trial,
    )


def _publish(warehouse: Warehouse, rows: ResultRows, session_id: str) -> Publication | None:
    staging = warehouse.staging(f"rerun-{session_id[7:23]}")
    try:
        rows.write(staging)
        return publish(
            warehouse,
            staging,
            PublicationRequest(kind=PUBLICATION_KIND, dataset=RERUN_SOURCE, revision=rows.revision),
        )
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def summary(imported: Imported) -> Mapping[str, int]:
    """How many runs have each verdict."""
    counts: dict[str, int] = {}
    for run in imported.runs:
        counts[str(run.comparison.verdict)] = counts.get(str(run.comparison.verdict), 0) + 1
    return counts
