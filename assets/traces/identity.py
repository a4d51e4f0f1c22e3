"""Which dataset a local copy is: its name and page, wherever the copy lies."""

import re

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assets.traces.errors import DatasetError
from assets.traces.layout import IDENTITY_FILE

_HUB_REMOTE = re.compile(
    r"(?:https?://(?:[^@/]*@)?(?:huggingface\.co|hf\.co)/|(?:ssh://)?git@hf\.co[:/])"
    r"datasets/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?"
)


class DatasetIdentity(BaseModel):
    """A dataset's name (`owner/name` on the hub) and its page; as `dataset.json` spells it."""

    model_config = ConfigDict(frozen=True, strict=True)

    id: str = Field(min_length=1, max_length=200)
    title: str | None = None
    url: str | None = None


FLASHINFER_TRACE = DatasetIdentity(
    id="flashinfer-ai/flashinfer-trace",
    title="FlashInfer Trace",
    url="https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace",
)
"""What a copy that does not say is taken for."""


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


def hub_identity(dataset: str) -> DatasetIdentity:
    """The identity of a dataset of the hub, given as `owner/name`."""
    return DatasetIdentity(id=dataset, url=f"https://huggingface.co/datasets/{dataset}")


def identity_of_remote(remote_url: str) -> DatasetIdentity | None:
    """The hub dataset that a git remote points to, or None for any other remote."""
    match = _HUB_REMOTE.fullmatch(remote_url.strip())
    return None if match is None else hub_identity(f"{match['owner']}/{match['name']}")
