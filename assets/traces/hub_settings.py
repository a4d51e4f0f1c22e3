"""How the hub is reached: endpoint, token, allowed hosts, limits; read from the environment once.

Variables and their meaning follow the hub's own Python client
(huggingface.co/docs/huggingface_hub, "Environment variables").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from assets.traces.errors import DatasetError

DEFAULT_ENDPOINT = "https://huggingface.co"
STORAGE_HOSTS = ("huggingface.co", "*.huggingface.co", "hf.co", "*.hf.co")
"""Where the hub redirects downloads to (Hub docs, "Downloading behind a proxy or firewall")."""

_TRUE_VALUES = {"1", "ON", "YES", "TRUE"}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9.-]+(?::[0-9]{1,5})?")


@dataclass(frozen=True)
class HubSettings:
    """Everything that a hub client needs to know; no part of it reads the environment later.

    `allowed_hosts` are the hosts, besides the endpoint, that downloads may be redirected to:
    `host`, `host:port` or `*.domain`. The token goes to the endpoint only.
    """

    endpoint: str = DEFAULT_ENDPOINT
    token: str | None = field(default=None, repr=False)
    offline: bool = False
    allowed_hosts: tuple[str, ...] = STORAGE_HOSTS
    certificate_bundle: str | None = None
    parallel_downloads: int = 8
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    answer_time_limit_s: float = 120.0
    file_time_limit_s: float = 900.0
    pull_time_limit_s: float = 12 * 3600.0
    retries: int = 5
    backoff_base_s: float = 0.5
    backoff_max_s: float = 30.0
    rate_limit_wait_max_s: float = 600.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "HubSettings":
        """Settings that the environment asks for; `DatasetError` names a variable that is bad."""
        endpoint = (environment.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).strip().rstrip("/")
        try:
            parts = urlsplit(endpoint)
        except ValueError as error:
            raise DatasetError(f"HF_ENDPOINT is no address ({error})") from error
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query:
            raise DatasetError(f"HF_ENDPOINT must be an http(s) address such as {DEFAULT_ENDPOINT}")
        if parts.username or parts.password:
            raise DatasetError("HF_ENDPOINT must not hold a password; use HF_TOKEN")
        token = environment.get("HF_TOKEN") or environment.get("HUGGING_FACE_HUB_TOKEN") or ""
        hosts = environment.get("KERNELINDEX_HUB_HOSTS", "")
        return cls(
            endpoint=endpoint,
            token=_one_line(token),
            offline=environment.get("HF_HUB_OFFLINE", "").upper() in _TRUE_VALUES,
            allowed_hosts=(*STORAGE_HOSTS, *_host_patterns(hosts)),
            certificate_bundle=environment.get("REQUESTS_CA_BUNDLE")
            or environment.get("CURL_CA_BUNDLE")
            or None,
            read_timeout_s=_seconds(environment, "HF_HUB_DOWNLOAD_TIMEOUT", 30.0),
        )

    def is_endpoint(self, url: str) -> bool:
        """Whether a URL has the scheme, host and port of the endpoint."""
        return _origin(urlsplit(url)) == _origin(urlsplit(self.endpoint))

    def allows(self, url: str) -> bool:
        """Whether a redirect to this URL may be followed."""
        parts = urlsplit(url)
        if parts.username or parts.password:
            return False
        if self.is_endpoint(url):
            return True
        secure_enough = parts.scheme == "https" or (
            parts.scheme == "http" and urlsplit(self.endpoint).scheme == "http"
        )
        return secure_enough and any(_matches(parts, pattern) for pattern in self.allowed_hosts)


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, parts.hostname or "", _port(parts)


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:  # a port that is no number
        return None


def _matches(parts: SplitResult, pattern: str) -> bool:
    host, _, port = pattern.partition(":")
    wanted_port = int(port) if port else _DEFAULT_PORTS.get(parts.scheme)
    if _port(parts) != wanted_port or parts.hostname is None:
        return False
    if host.startswith("*."):
        return parts.hostname.endswith(host[1:])
    return parts.hostname == host


def _host_patterns(text: str) -> list[str]:
    patterns = [part.strip().lower() for part in text.split(",") if part.strip()]
    for pattern in patterns:
        if not _HOST_PATTERN.fullmatch(pattern):
            raise DatasetError(
                f"KERNELINDEX_HUB_HOSTS: {pattern!r} is not a host; give names such as "
                "storage.example.org, storage.example.org:8443 or *.example.org"
            )
    return patterns


def _one_line(token: str) -> str | None:
    cleaned = token.replace("\r", "").replace("\n", "").strip()
    return cleaned or None


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    try:
        seconds = float(text) if text else default
    except ValueError as error:
        raise DatasetError(f"{name} must be a number of seconds, not {text!r}") from error
    if not 0 < seconds < float("inf"):
        raise DatasetError(f"{name} must be a positive number of seconds, not {text!r}")
    return seconds
