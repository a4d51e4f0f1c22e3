"""`hf://datasets/OWNER/NAME[@REVISION]`: how a dataset of the hub is named."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from assets.traces.errors import DatasetError

SCHEME = "hf://"
DEFAULT_REVISION = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_LOCATION = re.compile(rf"hf://datasets/(?P<dataset>{_NAME}/{_NAME})(?:@(?P<revision>.+))?")
_REVISION = re.compile(r"(?!.*\.\.)(?!.*//)[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")


@dataclass(frozen=True)
class HubLocation:
    """A dataset (`owner/name`) and the branch, tag or commit asked for."""

    dataset: str
    revision: str

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a full commit sha, which never moves."""
        return COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        suffix = "" if self.revision == DEFAULT_REVISION else f"@{self.revision}"
        return f"{SCHEME}datasets/{self.dataset}{suffix}"


def is_hub_location(location: str) -> bool:
    """Whether a location names a place on the hub, well-formed or not."""
    return location.startswith(SCHEME)


def parse_hub_location(location: str, revision: str | None = None) -> HubLocation:
    """Read a location; a `revision` given beside it must not contradict the one inside."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise DatasetError(
            f"{location}: not a dataset of the hub; write hf://datasets/OWNER/NAME or "
            "hf://datasets/OWNER/NAME@REVISION"
        )
    inside = None if match["revision"] is None else unquote(match["revision"])
    if inside is not None and revision is not None and inside != revision:
        raise DatasetError(f"{location}: names revision {inside}, but {revision} was asked for too")
    wanted = inside if inside is not None else revision
    if wanted is None:
        wanted = DEFAULT_REVISION
    if not _REVISION.fullmatch(wanted):
        raise DatasetError(f"{location}: {wanted!r} is not a branch, tag or commit")
    return HubLocation(match["dataset"], wanted)
