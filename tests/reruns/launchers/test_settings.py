"""Choosing a launcher and refusing settings that cannot work."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from assets.reruns.launchers.settings import (
    LauncherNotConfiguredError,
    LauncherSettings,
    LaunchersSettings,
    LocalSettings,
    SlurmSettings,
    SshSettings,
)
from tests.reruns.launchers.builders import WORKER


def test_one_setting_selects_the_launcher() -> None:
    settings = LaunchersSettings(
        selected="slurm",
        local=LocalSettings(worker_file=WORKER),
        slurm=SlurmSettings(worker_file=WORKER),
    )
    assert isinstance(settings.chosen(), SlurmSettings)
    assert isinstance(settings.chosen("local"), LocalSettings)


def test_a_launcher_without_settings_says_what_to_set() -> None:
    settings = LaunchersSettings(local=LocalSettings(worker_file=WORKER))
    with pytest.raises(LauncherNotConfiguredError, match=r"'ssh'.*worker_file and host.*: local$"):
        settings.chosen("ssh")


def test_the_kind_decides_which_settings_are_read() -> None:
    read = TypeAdapter[LauncherSettings](LauncherSettings).validate_python
    assert isinstance(read({"kind": "ssh", "worker_file": WORKER, "host": "gpu-box"}), SshSettings)
    with pytest.raises(ValidationError, match="host"):
        read({"kind": "local", "worker_file": WORKER, "host": "gpu-box"})


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "box; reboot", ""])
def test_a_host_cannot_smuggle_options_or_commands(host: str) -> None:
    with pytest.raises(ValidationError, match="host"):
        SshSettings(worker_file=WORKER, host=host)
