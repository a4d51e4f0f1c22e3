"""The Dagster instance of a deployment: its home folder and its one server."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assets.traces.snapshot import write_atomically
from pipelines.instance_settings import InstanceSettingsError, renewed

_CONFIGURATION = "dagster.yaml"


class InstanceError(Exception):
    """DAGSTER_HOME cannot be used; the message says what to do."""


def prepare_home(home: Path) -> tuple[str, ...]:
    """Make DAGSTER_HOME with our settings, and name it to Dagster.

    A `dagster.yaml` that is there is brought up to date; entries and comments of its owner stay.

    Returns:
        What the owner should know of that file, a line each.

    Raises:
        InstanceError: the folder cannot be written, or the file is no YAML.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        notes = _renew_settings(home / _CONFIGURATION)
    except OSError as error:
        raise InstanceError(
            f"{home}: cannot write here ({error.strerror}); choose a folder with DAGSTER_HOME"
        ) from error
    os.environ["DAGSTER_HOME"] = str(home)
    # A run states hundreds of events about tables; written one by one they take longer than it.
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "200")
    return notes


def _renew_settings(path: Path) -> tuple[str, ...]:
    there = path.exists()
    if there and not path.is_file():
        raise InstanceError(f"{path}: is no file; move it away")
    try:
        text = path.read_text(encoding="utf-8-sig") if there else ""
        found = renewed(text)
    except (InstanceSettingsError, UnicodeDecodeError) as error:
        raise InstanceError(f"{path}: {error}; correct it, or move it away") from error
    if found.text != text:
        try:
            # A link to a file that is kept elsewhere stays a link.
            _replace(path.resolve(), found.text.encode())
        except OSError as error:
            if not there:
                raise
            lines = (f"cannot be brought up to date ({error.strerror}) and stays as it is",)
            return tuple(f"{path}: {line}" for line in (*lines, *found.notes))
    return tuple(f"{path}: {note}" for note in found.notes)


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole, with the mode that it had."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    write_atomically(path, data)
    if mode is not None:
        path.chmod(mode)


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
