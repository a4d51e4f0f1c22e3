"""What the hub says a dataset has: the commit behind a name, its time, and its files.

Endpoints (Hub API reference; the hub's own client uses the same):
`/api/datasets/{id}/revision/{revision}`, `/api/datasets/{id}/commits/{revision}`,
`/api/datasets/{id}/tree/{revision}?recursive=true`, paginated by the Link header.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from assets.traces.errors import DatasetError, TransientDatasetError
from assets.traces.hub_http import HubClient, JsonAnswer, shown
from assets.traces.hub_location import COMMIT, HubLocation
from assets.traces.intake import size_limit_of
from assets.traces.layout import (
    DOCUMENT_SUFFIXES,
    TENSOR_SUFFIX,
    is_wanted,
    path_fault,
    printable,
)
from assets.traces.retries import retrying
from assets.traces.snapshot import BlobId, FileProblem, ProblemReason, Revision

MAX_PAGES = 2_000
MAX_FILES = 1_000_000


def _without_prefix(oid: str) -> str:
    return oid.removeprefix("sha256:")


class HeadAnswer(BaseModel):
    """The commit that a revision's name stands for, as the hub answered, and that answer's etag."""

    model_config = ConfigDict(frozen=True)

    sha: Revision
    last_modified: datetime | None = Field(default=None, alias="lastModified")
    etag: str | None = None


class ListedFile(BaseModel):
    """One file of a listing. A 64 digit `blob_id` is the sha256 of large file storage."""

    model_config = ConfigDict(frozen=True)

    path: str
    blob_id: BlobId
    size_bytes: int = Field(ge=0)

    @property
    def is_lfs(self) -> bool:
        """Whether the content is kept in large file storage."""
        return len(self.blob_id) == 64


class Listing(BaseModel):
    """All files of one commit that a pull could want (tensors and every author included)."""

    model_config = ConfigDict(frozen=True)

    revision: Revision
    revision_at: datetime | None
    files: tuple[ListedFile, ...]
    problems: tuple[FileProblem, ...]


class _LfsInfo(BaseModel):
    oid: Annotated[str, AfterValidator(_without_prefix)] = Field(
        pattern=r"^(sha256:)?[0-9a-f]{64}$"
    )
    size: int = Field(ge=0)


class _TreeEntry(BaseModel):
    type: str
    path: str
    oid: str = ""
    size: int = Field(default=0, ge=0)
    lfs: _LfsInfo | None = None


class _Commit(BaseModel):
    id: str
    date: datetime


_TREE_PAGE = TypeAdapter(list[_TreeEntry])
_COMMITS = TypeAdapter(list[_Commit])


def resolve_head(client: HubClient, location: HubLocation, known: HeadAnswer | None) -> HeadAnswer:
    """The commit behind a branch or tag now; one request, conditional on the last answer's etag."""
    url = (
        f"{_api(client, location)}/revision/{quote(location.revision, safe='')}"
        "?expand=sha&expand=lastModified"
    )
    answer = _get(client, url, None if known is None else known.etag)
    if answer.is_unchanged and known is not None:
        return known
    try:
        head = HeadAnswer.model_validate(answer.data)
    except ValidationError as error:
        raise DatasetError(f"{shown(url)}: the answer names no commit sha") from error
    return head.model_copy(update={"etag": answer.etag})


def commit_time(client: HubClient, location: HubLocation, head: HeadAnswer) -> datetime | None:
    """When a commit was made (UTC); None where the mirror does not say."""
    url = f"{_api(client, location)}/commits/{head.sha}?limit=1"
    try:
        commits = _COMMITS.validate_python(_get(client, url, None).data)
    except TransientDatasetError:
        raise
    except (DatasetError, ValidationError):
        # Not every mirror keeps history; the branch's last change is its head's commit time.
        return None if head.last_modified is None else head.last_modified.astimezone(UTC)
    first = next((commit for commit in commits if commit.id == head.sha), None)
    return None if first is None else first.date.astimezone(UTC)


def list_files(
    client: HubClient, location: HubLocation, revision: str, revision_at: datetime | None
) -> Listing:
    """Every file of a commit that a pull could want; odd entries become problems."""
    files: dict[str, ListedFile] = {}
    problems: dict[str, FileProblem] = {}
    for entry in _entries(client, location, revision):
        if entry.type == "directory":
            continue
        if not entry.path.endswith((*DOCUMENT_SUFFIXES, TENSOR_SUFFIX)):
            continue
        problem = _problem(entry)
        if problem is not None:
            problems[problem.path] = problem
        elif is_wanted(entry.path, with_tensors=True):
            file = ListedFile(
                path=entry.path,
                blob_id=entry.oid if entry.lfs is None else entry.lfs.oid,
                size_bytes=entry.size if entry.lfs is None else entry.lfs.size,
            )
            if files.setdefault(file.path, file) != file:
                problems[file.path] = FileProblem(
                    path=file.path,
                    reason=ProblemReason.DUPLICATE_PATH,
                    message=f"{file.path}: is listed twice with different content",
                )
            if len(files) > MAX_FILES:
                raise DatasetError(f"{location}: lists more than {MAX_FILES} files")
    return Listing(
        revision=revision,
        revision_at=revision_at,
        files=tuple(files[path] for path in sorted(files) if path not in problems),
        problems=tuple(problems[path] for path in sorted(problems)),
    )


def _entries(client: HubClient, location: HubLocation, revision: str) -> Iterator[_TreeEntry]:
    base = f"{_api(client, location)}/tree/{revision}"
    query = "recursive=true&expand=false"
    seen: set[str] = set()
    while True:
        # Only the query of the next link is taken: mirrors often leave another host's address
        # in it, and no link in an answer may lead the token elsewhere.
        answer = _get(client, f"{base}?{query}", None)
        served = answer.headers.get("X-Repo-Commit")
        if served is not None and COMMIT.fullmatch(served) and served != revision:
            raise DatasetError(f"{shown(base)}: lists commit {served} instead")
        try:
            yield from _TREE_PAGE.validate_python(answer.data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise DatasetError(
                f"{shown(base)}: not a file listing ({where}: {first['msg']})"
            ) from error
        if answer.next_query is None:
            return
        if answer.next_query in seen or len(seen) >= MAX_PAGES:
            raise DatasetError(f"{shown(base)}: the listing's pages never end")
        seen.add(answer.next_query)
        query = answer.next_query


def _problem(entry: _TreeEntry) -> FileProblem | None:
    path = printable(entry.path)
    if fault := path_fault(entry.path):
        return FileProblem(
            path=path, reason=ProblemReason.UNSAFE_PATH, message=f"{path}: the path {fault}"
        )
    if entry.type != "file":
        reason = ProblemReason.LINK if "link" in entry.type else ProblemReason.NOT_A_FILE
        kind = printable(entry.type)[:40]
        return FileProblem(path=path, reason=reason, message=f"{path}: is a {kind}, not a file")
    size_bytes = entry.size if entry.lfs is None else entry.lfs.size
    limit_bytes = size_limit_of(entry.path)
    if size_bytes > limit_bytes:
        return FileProblem(
            path=path,
            reason=ProblemReason.TOO_LARGE,
            message=f"{path}: has {size_bytes} bytes, more than the limit of {limit_bytes}",
        )
    if entry.lfs is None and not COMMIT.fullmatch(entry.oid):
        return FileProblem(
            path=path,
            reason=ProblemReason.NOT_A_FILE,
            message=f"{path}: is listed without a git blob id, so it cannot be checked",
        )
    return None


def _api(client: HubClient, location: HubLocation) -> str:
    return f"{client.settings.endpoint}/api/datasets/{location.dataset}"


def _get(client: HubClient, url: str, etag: str | None) -> JsonAnswer:
    def attempt() -> JsonAnswer:
        return client.get_json(url, etag=etag)

    return retrying(attempt, client.settings, client.stopped)
