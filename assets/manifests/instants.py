"""Times as traces write them, as the one UTC form that manifests hold."""

import re
from datetime import UTC, datetime, timedelta

_ISO = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?)?)?"
    r"(Z|[+-]\d\d(?::?\d\d)?)?\Z",
    re.IGNORECASE | re.ASCII,
)


# What Python's `datetime.isoformat` writes, as almost all traces have it, up to the milliseconds.
_COMMON = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?=\d*Z?\Z)", re.ASCII)


class InstantError(ValueError):
    """A time that is none."""


def utc_instant(text: str) -> datetime:
    """The instant that an ISO 8601 text names, in UTC, cut to milliseconds.

    A text without a zone is UTC. Shorter forms (year, month, day, minutes) name their beginning,
    as the public index reads them. `24:00:00` is the next midnight.

    Raises:
        InstantError: anything else, days that no calendar has included.
    """
    match = _ISO.match(text)
    if match is None:
        raise InstantError(f"{text!r} is not an ISO 8601 time")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    midnight_after = hour == "24" and not int(minute) and not int(second or 0)
    try:
        instant = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            0 if midnight_after else int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0")[:3].ljust(3, "0")) * 1000,
            UTC,
        )
        instant += timedelta(days=1) if midnight_after else timedelta()
        return instant - _offset(zone)
    except (ValueError, OverflowError) as error:
        raise InstantError(f"{text!r} is not a time: {error}") from None


def instant_and_text(text: str) -> tuple[datetime, str]:
    """`utc_instant` of a text and its `instant_text`; quicker than the two for the common form.

    Raises:
        InstantError: as `utc_instant`.
    """
    match = _COMMON.match(text)
    if match is not None:
        try:
            return datetime.fromisoformat(f"{match[0]}+00:00"), f"{match[0]}Z"
        except ValueError:
            # No such day or time, or 24:00:00: `utc_instant` says which.
            pass
    instant = utc_instant(text)
    return instant, instant_text(instant)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"offset {zone} is out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def instant_text(instant: datetime) -> str:
    """The form in manifests: `2025-10-21T13:37:42.930Z`."""
    return f"{instant.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
