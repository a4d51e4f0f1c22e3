"""Which dataset a local copy is: its name and page, wherever the copy lies.

A name is stated (by whoever ingests, or by `dataset.json`) or derived from what is sure to belong
to this copy alone: the clone's origin, its first commit, the place of a plain folder. No copy is
taken for a public dataset because it looks like one.
"""

import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assets.traces.errors import DatasetError
from assets.traces.layout import IDENTITY_FILE

_HUB_REMOTE = re.compile(
    r"(?:https?://(?:[^@/]*@)?(?:huggingface\.co|hf\.co)/|(?:ssh://)?git@hf\.co[:/])"
    r"datasets/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?"
)


# `git@host:owner/name`; a Windows drive is no host.
_SHORT_REMOTE = re.compile(r"(?:[^@/:]+@)?(?P<host>[\w.-]{2,}):(?P<path>[^:]+)")
_HUB_PREFIX = "hf://datasets/"
_STATED_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*", re.ASCII)
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME = 200
_SHORT = 12


class DatasetIdentity(BaseModel):
    """A dataset's name (`owner/name` on the hub) and its page; as `dataset.json` spells it."""

    model_config = ConfigDict(frozen=True, strict=True)

    id: str = Field(min_length=1, max_length=200)
    title: str | None = None
    url: str | None = None


def parse_identity(data: bytes, where: str) -> DatasetIdentity:
    """Read `dataset.json`; `DatasetError` says what is wrong with it."""
    try:
        return DatasetIdentity.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise DatasetError(
            f'{where}/{IDENTITY_FILE}: {field}: {first["msg"]}; expected {{"id": "owner/name", '
            f'"title": "…", "url": "https://…"}}'
        ) from error


def stated_identity(name: str) -> DatasetIdentity:
    """The identity that was given as `OWNER/NAME`, or `hf://datasets/OWNER/NAME` for a hub's page.

    Raises:
        DatasetError: something else.
    """
    on_hub = name.startswith(_HUB_PREFIX)
    dataset = name.removeprefix(_HUB_PREFIX)
    if not _STATED_NAME.fullmatch(dataset):
        raise DatasetError(
            f"{name!r} names no dataset; write OWNER/NAME, or hf://datasets/OWNER/NAME for a copy "
            "of a dataset of the hub"
        )
    return hub_identity(dataset) if on_hub else DatasetIdentity(id=dataset)


def hub_identity(dataset: str) -> DatasetIdentity:
    """The identity of a dataset of the hub, given as `owner/name`."""
    return DatasetIdentity(id=dataset, url=f"https://huggingface.co/datasets/{dataset}")


def identity_of_remote(remote_url: str, clone: Path) -> DatasetIdentity:
    """The dataset that a clone's remote is: on the hub, on another host, or on this machine.

    User names, passwords and queries in the address are no part of the name.
    """
    remote = remote_url.strip()
    on_hub = _HUB_REMOTE.fullmatch(remote)
    if on_hub is not None:
        return hub_identity(f"{on_hub['owner']}/{on_hub['name']}")
    page = _page(remote)
    if page is None:
        path = remote.removeprefix("file://")
        return DatasetIdentity(id=local_name(path, str((clone / path).resolve())))
    scheme, host, words = page
    name = "/".join((host, *words))[:_MAX_NAME]
    return DatasetIdentity(id=name, url=None if scheme is None else f"{scheme}://{name}")


def identity_of_history(first_commit: str) -> DatasetIdentity:
    """A clone without a remote: whatever grew from its first commit."""
    return DatasetIdentity(id=f"local/git-{first_commit[:_SHORT]}")


def identity_of_place(path: Path) -> DatasetIdentity:
    """A plain folder or archive that says nothing: what lies there, whatever it holds."""
    place = path.resolve()
    return DatasetIdentity(id=local_name(place.name, str(place)))


def local_name(path: str, unique: str) -> str:
    """A name for what is only on this machine, which the name does not describe."""
    word = (_words(path) or ["dataset"])[-1]
    return f"local/{word[:80]}-{sha256(unique.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _page(remote: str) -> tuple[str | None, str, list[str]] | None:
    """Scheme, host and path of a remote's page; no scheme where none is known, None for a path."""
    if "://" not in remote:
        short = _SHORT_REMOTE.fullmatch(remote)
        return short and ("https", short["host"].lower(), _words(short["path"]))
    try:
        address = urlsplit(remote)
        host, port = address.hostname, address.port
    except ValueError:
        return None
    words = _words(address.path)
    if not host or not words:
        return None
    if address.scheme in ("http", "https"):
        return address.scheme, f"{host}:{port}" if port else host, words
    return "https" if address.scheme == "ssh" else None, host, words


def _words(path: str) -> list[str]:
    """The components of a path in characters that any name may have, without git's own ending."""
    parts = path.rstrip("/").removesuffix(".git").split("/")
    return [word for part in parts if (word := _ODD.sub("-", part).strip("-."))]
