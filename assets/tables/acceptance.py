"""A person accepts that something published is lost; the chain keeps what, when and why.

Nothing else makes a loss permanent: until then `doctor` calls it an error and nothing is built.
"""

import shutil

from assets.tables.chain import Chain, Event, add_links, link
from assets.tables.errors import WarehouseError
from assets.tables.findings import Fault, Finding, Level
from assets.tables.integrity import examine_files
from assets.tables.losses import catch_up, lost
from assets.tables.warehouse import Warehouse

_RAW = (Fault.MISSING_RAW, Fault.MISSING_SNAPSHOT)


def accept_loss(warehouse: Warehouse, publication_id: str, reason: str) -> str:
    """Give up what is lost of a publication, and say what that is.

    That is its raw bytes where only they are gone, and else all of it: a directory that is
    damaged beyond repair is put aside. Where it comes back, it counts again.

    Raises:
        WarehouseError: no such publication, or nothing of it is lost.
    """
    if not reason.strip():
        raise WarehouseError("--reason: say why the loss is accepted; it is kept with it")
    with warehouse.locked():
        chain = catch_up(warehouse)
        if publication_id not in chain.records:
            named = ", ".join(lost(warehouse, chain)[:5]) or "nothing"
            raise WarehouseError(
                f"{publication_id}: no such publication on record; lost without being accepted: "
                f"{named}"
            )
        if publication_id in chain.given_up:
            raise WarehouseError(f"{publication_id}: its loss was accepted before")
        faults = _faults(warehouse, chain, publication_id)
        if not faults:
            raise WarehouseError(f"{publication_id}: nothing of it is lost, nothing to accept")
        only_raw = faults.issubset(_RAW)
        event = Event.RAW_LOSS_ACCEPTED if only_raw else Event.LOSS_ACCEPTED
        folder = warehouse.folder_of(publication_id)
        if not only_raw and (folder.is_symlink() or folder.exists()):
            warehouse.put_aside(folder)
        add_links(warehouse, chain, [link(event, publication_id, reason=reason)])
        # Ingesting its dataset again brings its rows back, even where nothing else is new.
        shutil.rmtree(warehouse.root / "settled", ignore_errors=True)
    what = "its raw bytes" if only_raw else "all that it brought"
    return f"{publication_id}: {what}; the loss is accepted and on record"


def _faults(warehouse: Warehouse, chain: Chain, publication_id: str) -> set[Fault]:
    found = [item for item in examine_files(warehouse).findings if item.level is Level.ERROR]
    return {item.fault for item in found if _is_of(item, chain, publication_id)}


def _is_of(finding: Finding, chain: Chain, publication_id: str) -> bool:
    """Whether a finding is of a publication, alone or as a part of a generation."""
    if finding.publication_id is not None:
        return finding.publication_id == publication_id
    if finding.generation is None:
        return False
    compacted = chain.compacted(finding.generation)
    return compacted is not None and publication_id in compacted.publications
