"""Where things are: the environment variables that configure a deployment, read in one place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SAMPLE = "sample"
_REMOTE = "hf://"


@dataclass(frozen=True)
class Settings:
    """A deployment.

    `warehouse` is the folder of the data, `dagster_home` that of Dagster's history and `dataset`
    what is ingested when nothing else is asked for, which `dataset_name` gives its name where it is
    a local copy that has none. `cron` and `time_zone` say when a remote
    dataset is ingested by schedule.
    """

    warehouse: Path
    dagster_home: Path
    dataset: str
    dataset_name: str | None = None
    cron: str = "0 5 * * *"
    time_zone: str = "UTC"

    @property
    def is_remote(self) -> bool:
        """Whether the dataset is on a hub, so that there is something to watch."""
        return self.dataset.startswith(_REMOTE)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """The variables that the README lists, with their defaults.

        The folders lie in the checkout, or in the current directory for an installed package.
        """
        base = _checkout() or Path.cwd()
        return cls(
            warehouse=_path(environment.get("KERNELINDEX_WAREHOUSE"), base / "warehouse"),
            dagster_home=_path(environment.get("DAGSTER_HOME"), base / ".dagster"),
            dataset=environment.get("KERNELINDEX_DATASET") or SAMPLE,
            dataset_name=environment.get("KERNELINDEX_DATASET_NAME") or None,
            cron=environment.get("KERNELINDEX_CRON") or cls.cron,
            time_zone=environment.get("KERNELINDEX_TIME_ZONE") or cls.time_zone,
        )


def _path(value: str | None, default: Path) -> Path:
    return Path(value).expanduser().resolve() if value else default


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() else None
