"""One HTTP request to the hub: who gets the token, which redirects are followed, what errors mean.

Retrying is done around these functions, see `retries`.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import requests.utils
import urllib3.exceptions

from assets.traces.deadlines import DeadlineAdapter, pieces, until
from assets.traces.errors import DatasetError, PullStoppedError, TransientDatasetError
from assets.traces.hub_settings import HubSettings
from assets.traces.layout import printable
from assets.traces.retries import PassingError, asked_wait_s

MAX_REDIRECTS = 5
MAX_ANSWER_BYTES = 8 * 1024**2
CHUNK_BYTES = 16 * 1024
"""What a broken connection loses at most."""
_REDIRECTS = {301, 302, 303, 307, 308}
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_USER_AGENT = f"kernelindex-pipeline; requests/{requests.__version__}"


@dataclass(frozen=True)
class JsonAnswer:
    """A JSON answer; `data` is None when the hub says that the `etag` sent still holds."""

    data: Any
    etag: str | None
    next_query: str | None
    headers: Mapping[str, str]

    @property
    def is_unchanged(self) -> bool:
        """Whether the copy that the etag belongs to is still current (304)."""
        return self.data is None


class HubClient:
    """Sends requests for several threads, each with its own connections."""

    def __init__(self, settings: HubSettings) -> None:
        self.settings = settings
        self.stopped = threading.Event()
        self._local = threading.local()
        self._adapters: list[DeadlineAdapter] = []
        self._lock = threading.Lock()
        self._proxies: dict[str, dict[str, str]] = {}
        self._busy_until = 0.0
        self._pull_deadline = time.monotonic() + settings.pull_time_limit_s

    def close(self) -> None:
        """Close every thread's connections."""
        with self._lock:
            for adapter in self._adapters:
                adapter.close()

    def open(self, url: str, headers: Mapping[str, str], deadline: float) -> requests.Response:
        """Send a GET request and follow allowed redirects; the body is not read yet.

        Any status comes back but redirects. Raises `PassingError` where the network fails and
        `DatasetError` for a redirect that is not allowed. `deadline` is in monotonic seconds.
        """
        for _ in range(MAX_REDIRECTS + 1):
            self._wait_while_busy(deadline)
            response = self._send(url, headers, deadline)
            location = response.headers.get("Location")
            if response.status_code not in _REDIRECTS or location is None:
                return response
            self._discard(response)
            url = self._redirected(url, location)
        raise DatasetError(f"{shown(url)}: more than {MAX_REDIRECTS} redirects")

    def get_json(self, url: str, *, etag: str | None = None) -> JsonAnswer:
        """GET a JSON document, or learn that the one with this etag is unchanged.

        Raises `PassingError`, or `DatasetError` where asking again is no use.
        """
        deadline = time.monotonic() + self.settings.answer_time_limit_s
        headers = {"Accept": "application/json"}
        if etag is not None:
            headers["If-None-Match"] = etag
        response = self.open(url, headers, deadline)
        try:
            if response.status_code == 304 and etag is not None:
                return JsonAnswer(None, etag, None, response.headers)
            self.check_status(response, url)
            body = b"".join(self.chunks(response, url, deadline, MAX_ANSWER_BYTES))
        finally:
            response.close()
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            what = "a web page" if looks_like_html(body) else "no JSON"
            raise PassingError(f"{shown(url)}: the answer is {what}") from error
        if data is None:
            raise PassingError(f"{shown(url)}: the answer is null")
        return JsonAnswer(
            data, response.headers.get("ETag"), _next_query(response), response.headers
        )

    def check_status(self, response: requests.Response, url: str) -> None:
        """Raise what a status other than success means."""
        status = response.status_code
        if status in (200, 206):
            return
        if status in _PASSING:
            wait_s = asked_wait_s(response.headers) if status in (429, 503) else None
            if status == 429:
                self._note_busy(wait_s)
            self._discard(response)
            raise PassingError(f"{shown(url)}: the hub answers {status}", wait_s=wait_s)
        hint = {
            401: "set HF_TOKEN to a token that may read this dataset, and check its name",
            403: "accept the dataset's terms on its page, or set HF_TOKEN to a token that may "
            "read it",
            404: "check the dataset's name and the revision; a private dataset needs HF_TOKEN",
        }.get(status, "this request will not succeed as it is")
        said = response.headers.get("X-Error-Message", "")
        reason = f" ({printable(said)})" if said else ""
        raise DatasetError(f"{shown(url)}: the hub answers {status}{reason}; {hint}")

    def chunks(
        self, response: requests.Response, url: str, deadline: float, max_bytes: int
    ) -> Iterator[bytes]:
        """The body in pieces, never more than `max_bytes` and not past the deadline."""
        received_bytes = 0
        try:
            for chunk in pieces(response.raw, CHUNK_BYTES):
                received_bytes += len(chunk)
                if received_bytes > max_bytes:
                    raise DatasetError(f"{shown(url)}: sends more than {max_bytes} bytes")
                yield chunk
                if time.monotonic() > deadline:
                    raise TransientDatasetError(f"{shown(url)}: took longer than the time limit")
                if self.stopped.is_set():
                    raise PullStoppedError
            # A connection that was cut off looks like one whose server has no more to send.
            if time.monotonic() > deadline:
                raise TransientDatasetError(f"{shown(url)}: took longer than the time limit")
        except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            if time.monotonic() > deadline:
                raise TransientDatasetError(
                    f"{shown(url)}: took longer than the time limit"
                ) from error
            raise PassingError(f"{shown(url)}: the answer broke off ({_cause(error)})") from error

    def _redirected(self, url: str, location: str) -> str:
        """Where a redirect leads, if it may be followed."""
        try:
            target = urljoin(url, location)
            parts = urlsplit(target)
            allowed = self.settings.allows(target)
        except ValueError as error:
            raise DatasetError(f"{shown(url)}: redirects to what is no address") from error
        if not allowed:
            host = printable(f"{parts.scheme}://{parts.netloc.split('@')[-1]}")
            raise DatasetError(
                f"{shown(url)}: redirects to {host}, which is not an allowed host; if it should "
                "be, add it to KERNELINDEX_HUB_HOSTS"
            )
        return target

    def _send(self, url: str, headers: Mapping[str, str], deadline: float) -> requests.Response:
        deadline = min(deadline, self._pull_deadline)
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TransientDatasetError(f"{shown(url)}: took longer than the time limit")
        sent = {"User-Agent": _USER_AGENT, **headers}
        if self.settings.token is not None and self.settings.is_endpoint(url):
            sent["Authorization"] = f"Bearer {self.settings.token}"
        request = requests.PreparedRequest()
        try:
            request.prepare(method="GET", url=url, headers=sent)
            with until(deadline):
                return self._adapter().send(
                    request,
                    stream=True,
                    timeout=(
                        min(self.settings.connect_timeout_s, remaining_s),
                        min(self.settings.read_timeout_s, remaining_s),
                    ),
                    verify=self.settings.certificate_bundle or True,
                    proxies=self._proxies_for(url),
                )
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema) as error:
            raise DatasetError(f"{shown(url)}: not a usable address") from error
        except requests.RequestException as error:
            if time.monotonic() > deadline:
                raise TransientDatasetError(
                    f"{shown(url)}: took longer than the time limit"
                ) from error
            raise PassingError(f"{shown(url)}: cannot be reached ({_cause(error)})") from error

    def _adapter(self) -> DeadlineAdapter:
        """This thread's connections.

        The adapter is used without a `requests.Session` around it: a session reads the whole body
        of a redirect, adds credentials from a netrc file, and keeps cookies.
        """
        adapter: DeadlineAdapter | None = getattr(self._local, "adapter", None)
        if adapter is None:
            adapter = DeadlineAdapter(pool_connections=4, pool_maxsize=1)
            self._local.adapter = adapter
            with self._lock:
                self._adapters.append(adapter)
        return adapter

    def _proxies_for(self, url: str) -> dict[str, str]:
        origin = "://".join(urlsplit(url)[:2])
        proxies = self._proxies.get(origin)
        if proxies is None:
            proxies = requests.utils.get_environ_proxies(url, no_proxy=None)
            self._proxies[origin] = proxies
        return proxies

    def _note_busy(self, wait_s: float | None) -> None:
        """Let every thread wait that a rate limit asks one of them to wait."""
        if wait_s is not None and wait_s <= self.settings.rate_limit_wait_max_s:
            with self._lock:
                self._busy_until = max(self._busy_until, time.monotonic() + wait_s)

    def _wait_while_busy(self, deadline: float) -> None:
        wait_s = self._busy_until - time.monotonic()
        if wait_s > 0 and self.stopped.wait(min(wait_s, max(0.0, deadline - time.monotonic()))):
            raise PullStoppedError

    def _discard(self, response: requests.Response) -> None:
        """Drop a body so that its connection can be used again, unless the body is long."""
        with suppress(OSError, HTTPException, urllib3.exceptions.HTTPError):
            response.raw.read(16 * 1024, decode_content=False)
        response.close()


def _next_query(response: requests.Response) -> str | None:
    """The query of the Link header's next page."""
    link = response.links.get("next", {}).get("url")
    return None if link is None else link.partition("?")[2].partition("#")[0]


def shown(url: str) -> str:
    """A URL as it may stand in a message: without its query, which can hold signatures."""
    parts = urlsplit(url)
    return printable(f"{parts.scheme}://{parts.netloc.split('@')[-1]}{parts.path}")


def looks_like_html(data: bytes) -> bool:
    """Whether bytes begin like a web page."""
    return data[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _cause(error: BaseException) -> str:
    """The innermost reason in one short line."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    text = " ".join(str(error).split()) or type(error).__name__
    return printable(text)[:200]
