"""Where things are: the environment variables that configure a deployment, read in one place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pipelines.server.origins import Origin

SAMPLE = "sample"
_REMOTE = "hf://"
_ORIGINS = "KERNELINDEX_UI_ORIGINS"
_KEEP_RUNS, _KEEP_RERUNS = "KERNELINDEX_KEEP_RUNS_DAYS", "KERNELINDEX_KEEP_RERUNS_DAYS"
_MOST_DAYS = 36_500


class SettingsError(Exception):
    """A variable's value cannot be used; the message names both and what to write."""


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


@dataclass(frozen=True)
class Keeping:
    """How long finished runs stand in Dagster's history; None is for ever.

    Runs that measured (`reruns`) are the evidence of published results and stay longer.
    """

    runs: timedelta | None = timedelta(days=30)
    reruns: timedelta | None = timedelta(days=365)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Keeping":
        """The two variables in days, where 0 is for ever.

        Raises:
            SettingsError: a value is no number of days.
        """
        runs = _days(environment, _KEEP_RUNS, cls.runs)
        reruns = _days(environment, _KEEP_RERUNS, cls.reruns)
        # What measured never goes before what did not.
        longest = None if runs is None or reruns is None else max(runs, reruns)
        return cls(runs, longest)


def public_origins(environment: Mapping[str, str] = os.environ) -> frozenset[Origin]:
    """The addresses under which a proxy shows the UI, beside this machine's own.

    Raises:
        SettingsError: one of them is no origin.
    """
    origins = set()
    for text in filter(None, map(str.strip, environment.get(_ORIGINS, "").split(","))):
        origin = Origin.read(text.removesuffix("/"))
        if origin is None:
            raise SettingsError(
                f"{_ORIGINS}: {text} is no origin; write https://HOST or https://HOST:PORT, "
                "several with commas between them"
            )
        origins.add(origin)
    return frozenset(origins)


def _days(environment: Mapping[str, str], name: str, default: timedelta | None) -> timedelta | None:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or int(text[:9]) > _MOST_DAYS:
        raise SettingsError(f"{name}: {text} is no number of days; write 30, or 0 for ever")
    return timedelta(days=int(text)) if int(text) else None


def _path(value: str | None, default: Path) -> Path:
    return Path(value).expanduser().resolve() if value else default


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() else None
