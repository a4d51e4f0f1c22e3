"""Examine the raw bytes: could every publication be made again from them?"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from assets.tables.chain import Chain
from assets.tables.findings import Examination, Fault, Finding, Level
from assets.tables.published_copies import copy_digests, needs_copies
from assets.tables.warehouse import Publication, Warehouse
from assets.traces.errors import DatasetError, RawStoreError
from assets.traces.snapshot import load_snapshot

CORRECTION = "correction"


def examine_raw(
    warehouse: Warehouse,
    chain: Chain,
    records: Iterable[Publication],
    found: Examination,
    read_bytes: bool,
) -> None:
    """Look whether the raw bytes of every publication are here, and with `read_bytes` whole."""
    stored: set[str] = set()
    # Opening the store would make its folder.
    if (warehouse.root / "raw").is_dir():
        stored = set(warehouse.store.digests())
        if read_bytes:
            found.findings += _damaged(warehouse, stored, found)
    for record in records:
        # Before there was a chain nothing was copied; the first write does it.
        if needs_copies(record) and not chain.exists:
            continue
        found.findings += _missing(warehouse, chain, record, stored)


def _damaged(warehouse: Warehouse, stored: set[str], found: Examination) -> Iterator[Finding]:
    damaged: list[str] = []
    for digest in sorted(stored):
        found.count("raw files")
        if not _is_good(warehouse, digest):
            damaged.append(digest)
    if damaged:
        yield Finding(
            Fault.DAMAGED_RAW,
            Level.ERROR,
            str(warehouse.root / "raw"),
            "raw bytes are not those of their name; ingest their dataset again to fetch them",
            count=len(damaged),
            examples=tuple(damaged[:3]),
        )


def _path(warehouse: Warehouse, digest: str) -> Path:
    return warehouse.root / "raw" / digest[7:9] / f"{digest[7:]}.zst"


def _is_good(warehouse: Warehouse, digest: str) -> bool:
    try:
        warehouse.store.get(digest)
    except RawStoreError:
        return False
    return not _path(warehouse, digest).is_symlink()


def put_damaged_aside(warehouse: Warehouse) -> list[str]:
    """Move raw bytes and lists of files that are not what they should be out of the way.

    What is not there is fetched again by the next ingestion of its dataset; what is damaged is not.
    """
    done: list[str] = []
    if (warehouse.root / "raw").is_dir():
        for digest in list(warehouse.store.digests()):
            if not _is_good(warehouse, digest):
                aside = warehouse.put_aside(_path(warehouse, digest))
                done.append(f"{digest[:19]}: damaged raw bytes moved to {aside}")
    for path in sorted(warehouse.snapshots.glob("*.json")):
        try:
            whole = warehouse.snapshot_file(load_snapshot(path).snapshot_id) == path
        except DatasetError:
            whole = False
        if not whole or path.is_symlink():
            done.append(f"{path}: damaged, moved to {warehouse.put_aside(path)}")
    return done


def _missing(
    warehouse: Warehouse, chain: Chain, record: Publication, stored: set[str]
) -> Iterator[Finding]:
    name = record.publication_id
    accepted = name in chain.raw_given_up
    level = Level.WARNING if accepted else Level.ERROR
    so = (
        ", which was accepted"
        if accepted
        else f", or `kernelindex doctor --accept-loss {name} --reason ...`"
    )
    if record.snapshot_id is None:
        wanted, again = copy_digests(record), "put the folder raw/ back"
    elif record.kind == CORRECTION:
        wanted, again = {record.snapshot_id}, "put the folder raw/ back"
    else:
        again = f"ingest {record.dataset} at {record.revision} again"
        snapshot = warehouse.snapshot_of(record.snapshot_id)
        if snapshot is None:
            yield Finding(
                Fault.MISSING_SNAPSHOT,
                level,
                str(warehouse.snapshot_file(record.snapshot_id)),
                f"publication {name} could not be made again without it; {again} to write it{so}",
                publication_id=name,
            )
            return
        wanted = {file.digest for file in snapshot.files}
    missing = sorted(wanted - stored)
    if missing:
        yield Finding(
            Fault.MISSING_RAW,
            level,
            str(warehouse.root / "raw"),
            f"publication {name} could not be made again without them; {again}{so}",
            count=len(missing),
            examples=tuple(missing[:3]),
            publication_id=name,
        )
