"""Moments in time as text."""

from datetime import datetime, timezone


def utc_now() -> str:
    """The time as UTC with a Z, to the microsecond."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
