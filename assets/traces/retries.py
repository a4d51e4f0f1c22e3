"""Retrying passing faults: bounded attempts, jitter, and the waits that servers ask for."""

import random
import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from assets.traces.errors import DatasetError, PullStoppedError, TransientDatasetError
from assets.traces.hub_settings import HubSettings

Result = TypeVar("Result")
# IETF draft-ietf-httpapi-ratelimit-headers, as the hub sends it: `"api";r=0;t=55`.
_RATE_LIMIT_RESET = re.compile(r";\s*t\s*=\s*([0-9]+)")


class PassingError(Exception):
    """One attempt failed in a way that another may not; what to raise when none is left."""

    def __init__(
        self,
        message: str,
        *,
        wait_s: float | None = None,
        progressed: bool = False,
        final: type[DatasetError] = TransientDatasetError,
        max_attempts: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.wait_s = wait_s
        self.progressed = progressed
        self.final = final
        self.max_attempts = max_attempts


def retrying(
    operation: Callable[[], Result], settings: HubSettings, stopped: threading.Event
) -> Result:
    """Run an operation until it succeeds or its passing faults are too many.

    Waits grow exponentially with full jitter. A wait that the server asked for is kept, up to
    `rate_limit_wait_max_s` in all; one that asks for less than the growing wait gets that one, so
    that no answer can have the server asked without end. An attempt that got further than the one
    before does not count. Raises the last fault's `final` error, or `TransientDatasetError` when
    stopped.
    """
    attempts = 0
    asked_times = 0
    asked_wait_s = 0.0
    while True:
        try:
            return operation()
        except PassingError as fault:
            attempts = 1 if fault.progressed else attempts + 1
            allowed = settings.retries + 1
            if fault.max_attempts is not None:
                allowed = min(allowed, fault.max_attempts)
            if fault.wait_s is not None:
                asked_times += 1
                wait_s = max(fault.wait_s, _backoff_s(settings, asked_times))
                asked_wait_s += wait_s
                if asked_wait_s > settings.rate_limit_wait_max_s:
                    raise fault.final(
                        f"{fault.message}; it asks to wait {fault.wait_s:.0f} s, try again later"
                    ) from fault
            elif attempts >= allowed:
                tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
                raise fault.final(f"{fault.message} ({tries})") from fault
            else:
                wait_s = random.uniform(0, _backoff_s(settings, attempts))
        if stopped.wait(wait_s):
            raise PullStoppedError


def _backoff_s(settings: HubSettings, attempts: int) -> float:
    # Doubled thirty times it is past every limit, and a thousand times no float any more.
    return min(settings.backoff_max_s, settings.backoff_base_s * 2.0 ** min(attempts, 30))


def asked_wait_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that an answer's `Retry-After` or `RateLimit` header asks to wait, if any does."""
    text = headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    if text:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            at = None
        if at is not None:
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
    match = _RATE_LIMIT_RESET.search(headers.get("RateLimit", ""))
    return None if match is None else float(match[1])
