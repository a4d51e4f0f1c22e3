"""The Dagster instance of a deployment: its home folder and its one server."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

_CONFIGURATION = "dagster.yaml"


class InstanceError(Exception):
    """DAGSTER_HOME cannot be used; the message says what to do."""


def prepare_home(home: Path) -> None:
    """Make DAGSTER_HOME with our settings, and name it to Dagster.

    A `dagster.yaml` that is there stays as it is: it may have been changed on purpose.

    Raises:
        InstanceError: where the folder cannot be written.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        target = home / _CONFIGURATION
        if not target.exists():
            text = resources.files("pipelines").joinpath(_CONFIGURATION).read_text()
            target.write_text(text)
    except OSError as error:
        raise InstanceError(
            f"{home}: cannot write here ({error.strerror}); choose a folder with DAGSTER_HOME"
        ) from error
    os.environ["DAGSTER_HOME"] = str(home)
    # A run states hundreds of events about tables; written one by one they take longer than it.
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "200")


@contextmanager
def only_server(home: Path) -> Iterator[int]:
    """Hold the lock of the one server that may use this DAGSTER_HOME, and hand on its descriptor.

    Two servers on one home mistake each other's runs for dead ones. A program that inherits the
    descriptor holds the lock too: it is free when the last of them has ended.

    Raises:
        InstanceError: where another server holds it.
    """
    descriptor = os.open(home / "server.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InstanceError(
                f"another server is using {home}; stop it, or give this one its own DAGSTER_HOME"
            ) from error
        yield descriptor
    finally:
        os.close(descriptor)
