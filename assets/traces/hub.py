"""A dataset of the hub: its commit resolved once, its files listed once and fetched once each.

An unchanged dataset costs one conditional request. Blobs seen before, at whatever revision, are
not fetched again. What a stopped or killed pull had stored is there for the next one.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from assets.traces.download import (
    MEMORY_LIMIT_BYTES,
    FileBody,
    MemoryBody,
    download,
    file_url,
)
from assets.traces.errors import DatasetError, PullStoppedError, TransientDatasetError
from assets.traces.hub_cache import HubCache, Selection
from assets.traces.hub_http import HubClient
from assets.traces.hub_listing import (
    HeadAnswer,
    ListedFile,
    Listing,
    commit_time,
    list_files,
    resolve_head,
)
from assets.traces.hub_location import HubLocation, parse_hub_location
from assets.traces.hub_settings import HubSettings
from assets.traces.identity import hub_identity
from assets.traces.layout import TENSOR_SUFFIX, of_authors
from assets.traces.lfs import parse_pointer
from assets.traces.partial_files import partial_file, remove_leftovers
from assets.traces.progress import PullProgress
from assets.traces.raw_store import RawStore
from assets.traces.snapshot import DatasetFile, DatasetSnapshot, FileProblem, ProblemReason

MAX_ERRORS = 10
_PARTIAL = "partial"
_SHA256_DIGITS = 64
_MAX_POINTER_BYTES = 1024
_STOP_WAIT_S = 5.0
"""How long to wait for a thread that sits in a read; it is left behind then, and ends itself."""


def pull_hub(
    location: HubLocation,
    *,
    authors: Sequence[str] | None,
    store: RawStore,
    settings: HubSettings,
    with_tensors: bool = False,
    progress: Callable[[PullProgress], None] | None = None,
) -> DatasetSnapshot:
    """Bring the wanted files of one commit into the store and say what they are.

    Offline, the commit that was last pulled completely is taken from the store with no request.
    Raises `TransientDatasetError` for faults that may pass and `DatasetError` for others; files
    fetched before the fault stay in the store.
    """
    cache = HubCache(store, settings.endpoint, location.dataset)
    report = progress or _ignore
    report(PullProgress("list", 0, 0, 0, 0, 0))
    selection = Selection(
        None if authors is None else tuple(sorted(set(authors))), with_tensors=with_tensors
    )
    client = HubClient(settings)
    try:
        if settings.offline:
            listing = _listing_offline(location, cache, selection)
        else:
            listing = _listing_online(client, location, cache)
        wanted = _wanted(listing, selection)
        remove_leftovers(store.root / _PARTIAL, lambda blob_id: _digest(store, blob_id) is not None)
        missing = _missing(wanted, store)
        if missing and settings.offline:
            raise DatasetError(
                f"{location}: {len(missing)} of {len(wanted)} files at {listing.revision} were "
                "never pulled and HF_HUB_OFFLINE is set; pull once without it"
            )
        fetch = _Fetch(client, location.dataset, listing.revision, store, report)
        fetch.run(wanted, missing)
    finally:
        client.close()
    snapshot = _snapshot(location, listing, wanted, selection, store)
    if not settings.offline:
        cache.keep_pulled(location.revision, selection, HeadAnswer(sha=listing.revision))
    return snapshot


def head_revision(location: str, *, store: RawStore, settings: HubSettings) -> str:
    """The commit sha behind a location now, in one conditional request.

    Raises `TransientDatasetError` when the hub cannot be asked (or `HF_HUB_OFFLINE` is set).
    """
    where = parse_hub_location(location)
    if where.is_pinned:
        return where.revision
    if settings.offline:
        raise TransientDatasetError(f"{where}: the hub is not asked while HF_HUB_OFFLINE is set")
    cache = HubCache(store, settings.endpoint, where.dataset)
    client = HubClient(settings)
    try:
        return _head(client, where, cache).sha
    finally:
        client.close()


def _head(client: HubClient, location: HubLocation, cache: HubCache) -> HeadAnswer:
    if location.is_pinned:
        return HeadAnswer(sha=location.revision)
    known = cache.head(location.revision)
    head = resolve_head(client, location, known)
    if head != known:
        cache.keep_head(location.revision, head)
    return head


def _listing_online(client: HubClient, location: HubLocation, cache: HubCache) -> Listing:
    head = _head(client, location, cache)
    listing = cache.listing(head.sha)
    if listing is None:
        at = commit_time(client, location, head)
        listing = list_files(client, location, head.sha, at)
        cache.keep_listing(listing)
    return listing


def _listing_offline(location: HubLocation, cache: HubCache, selection: Selection) -> Listing:
    head = HeadAnswer(sha=location.revision) if location.is_pinned else None
    head = head or cache.pulled(location.revision, selection)
    listing = None if head is None else cache.listing(head.sha)
    if listing is None:
        raise DatasetError(
            f"{location}: was never pulled completely and HF_HUB_OFFLINE is set; "
            "pull once without it"
        )
    return listing


def _is_selected(path: str, selection: Selection) -> bool:
    return selection.with_tensors or not path.endswith(TENSOR_SUFFIX)


def _wanted(listing: Listing, selection: Selection) -> list[ListedFile]:
    files = {file.path: file for file in listing.files if _is_selected(file.path, selection)}
    if not files:
        raise DatasetError(
            f"no dataset files at {listing.revision}; expected definitions/, workloads/, "
            "solutions/ and traces/"
        )
    return [files[path] for path in of_authors(files, selection.authors)]


def _missing(wanted: Sequence[ListedFile], store: RawStore) -> list[ListedFile]:
    """One file for each blob that is not in the store."""
    missing = {file.blob_id: file for file in wanted if _digest(store, file.blob_id) is None}
    return list(missing.values())


def _digest(store: RawStore, blob_id: str) -> str | None:
    """The digest of a blob that is in the store; for large file storage they are the same."""
    if len(blob_id) == _SHA256_DIGITS:
        digest = f"sha256:{blob_id}"
        return digest if store.has(digest) else None
    return store.digest_of_blob(blob_id)


def _snapshot(
    location: HubLocation,
    listing: Listing,
    wanted: Sequence[ListedFile],
    selection: Selection,
    store: RawStore,
) -> DatasetSnapshot:
    identity = hub_identity(location.dataset)
    files: list[DatasetFile] = []
    problems = [p for p in listing.problems if _is_selected(p.path, selection)]
    for listed in wanted:
        digest = _digest(store, listed.blob_id)
        if digest is None:
            raise TransientDatasetError(
                f"{listed.path}: left the store during the pull; pull again"
            )
        if listed.size_bytes <= _MAX_POINTER_BYTES and parse_pointer(store.get(digest)):
            problems.append(
                FileProblem(
                    path=listed.path,
                    reason=ProblemReason.LFS_POINTER,
                    message=f"{listed.path}: the dataset has a Git LFS pointer as its content",
                )
            )
            continue
        files.append(
            DatasetFile(
                path=listed.path,
                digest=digest,
                blob_id=listed.blob_id,
                size_bytes=listed.size_bytes,
            )
        )
    return DatasetSnapshot(
        dataset=identity.id,
        url=identity.url,
        location=str(location),
        revision=listing.revision,
        revision_at=listing.revision_at,
        authors=selection.authors,
        files=tuple(files),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )


def _ignore(progress: PullProgress) -> None:
    del progress


@dataclass
class _Fetch:
    """Downloads missing files with a few threads; this thread counts and reports."""

    client: HubClient
    dataset: str
    revision: str
    store: RawStore
    report: Callable[[PullProgress], None]
    errors: list[DatasetError] = field(default_factory=list)

    def run(self, wanted: Sequence[ListedFile], missing: Sequence[ListedFile]) -> None:
        """Fetch all that is missing, or raise what stopped it."""
        known_bytes = sum(file.size_bytes for file in wanted)
        missing_bytes = sum(file.size_bytes for file in missing)
        done, done_bytes = len(wanted) - len(missing), known_bytes - missing_bytes
        known = done
        self.report(PullProgress("fetch", done, known, len(wanted), done_bytes, known_bytes))
        if not missing:
            return
        todo: queue.SimpleQueue[ListedFile] = queue.SimpleQueue()
        for file in missing:
            todo.put(file)
        results: queue.SimpleQueue[ListedFile | Exception | None] = queue.SimpleQueue()
        count = min(self.client.settings.parallel_downloads, len(missing))
        threads = [
            threading.Thread(target=self._work, args=(todo, results), daemon=True)
            for _ in range(count)
        ]
        with self.store.batch():
            try:
                for thread in threads:
                    thread.start()
                while count:
                    result = results.get()
                    if result is None:
                        count -= 1
                    elif isinstance(result, DatasetError):
                        self._note(result)
                    elif isinstance(result, Exception):
                        raise result
                    else:
                        done += 1
                        done_bytes += result.size_bytes
                        self.report(
                            PullProgress(
                                "fetch",
                                done,
                                known,
                                len(wanted),
                                done_bytes,
                                known_bytes,
                                result.path,
                            )
                        )
            finally:
                self.client.stopped.set()
                for thread in threads:
                    thread.join(timeout=_STOP_WAIT_S)
        if self.errors:
            raise self._error(len(missing))

    def _work(
        self,
        todo: "queue.SimpleQueue[ListedFile]",
        results: "queue.SimpleQueue[ListedFile | Exception | None]",
    ) -> None:
        try:
            while not self.client.stopped.is_set():
                try:
                    file = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._fetch(file)
                except PullStoppedError:
                    return
                except DatasetError as error:
                    results.put(error)
                except OSError as error:
                    results.put(DatasetError(f"{self.store.root}: cannot be written ({error})"))
                except Exception as error:  # noqa: BLE001  raised again by the thread that waits
                    results.put(error)
                else:
                    results.put(file)
        finally:
            results.put(None)

    def _note(self, error: DatasetError) -> None:
        """Bad data in one file does not keep the others from being fetched; a dead hub does."""
        self.errors.append(error)
        if isinstance(error, TransientDatasetError) or len(self.errors) >= MAX_ERRORS:
            self.client.stopped.set()

    def _error(self, missing: int) -> DatasetError:
        """The error to raise: lasting ones first, since no retry mends those."""
        lasting = [error for error in self.errors if not isinstance(error, TransientDatasetError)]
        first = (lasting or self.errors)[0]
        if len(self.errors) == 1:
            return first
        return type(first)(f"{first.message} (and {len(self.errors) - 1} more of {missing} files)")

    def _fetch(self, file: ListedFile) -> None:
        url = file_url(self.client, self.dataset, self.revision, file.path)
        if file.size_bytes <= MEMORY_LIMIT_BYTES:
            body = MemoryBody()
            download(self.client, url, file, body)
            self.store.put(body.data, file.blob_id)
            return
        with partial_file(self.store.root / _PARTIAL, file.blob_id) as (path, stream):
            download(self.client, url, file, FileBody(stream))
            stream.flush()
            self.store.put_file(path, file.blob_id)
