"""Fixtures that start the services once; tests that ask for one are marked `integration`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.reruns.launchers.settings import LocalSettings, SlurmSettings, SshSettings
from tests.reruns.launchers.builders import QUICK_STOP, WORKER
from tests.reruns.launchers.services import SlurmCluster, SshServer


def _need(*programs: str) -> None:
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in programs if shutil.which(name, path=search) is None]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    _need("ssh", "sshd", "ssh-keygen")
    server = SshServer(tmp_path_factory.mktemp("services") / "sshd")
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    _need("slurmctld", "slurmd", "munged", "sbatch")
    if os.getuid() != 0:
        pytest.skip("the Slurm daemons of the tests run as root")
    cluster = SlurmCluster(tmp_path_factory.mktemp("services") / "slurm")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def local_settings() -> LocalSettings:
    return LocalSettings(
        worker_file=WORKER, python=sys.executable, stop=QUICK_STOP, poll_interval_s=0.05
    )


@pytest.fixture
def ssh_settings(sshd: SshServer, tmp_path: Path) -> SshSettings:
    return SshSettings(
        worker_file=WORKER,
        python=sys.executable,
        stop=QUICK_STOP,
        poll_interval_s=0.1,
        host="127.0.0.1",
        port=sshd.port,
        user=sshd.user,
        identity_file=sshd.identity_file,
        known_hosts_file=sshd.known_hosts_file,
        config_file=Path("/dev/null"),
        connect_timeout_s=3,
        remote_root=f"{tmp_path}/remote/jobs",
    )


@pytest.fixture
def slurm_settings(slurm_cluster: SlurmCluster) -> SlurmSettings:
    return SlurmSettings(
        worker_file=WORKER,
        python=sys.executable,
        stop=QUICK_STOP,
        poll_interval_s=0.1,
        config_file=slurm_cluster.config_file,
    )
