"""Names of web servers: what `Host` and `Origin` say, in one spelling. No rules here."""

import ipaddress
import re
from dataclasses import dataclass

_DEFAULT_PORTS = {"http": 80, "https": 443}
_PORT = r"(?::(?P<port>[0-9]{1,5}))?"
_HOST = rf"(?P<host>[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]){_PORT}"
_AUTHORITY = re.compile(_HOST)
_ORIGIN = re.compile(rf"(?P<scheme>https?)://{_HOST}")


@dataclass(frozen=True)
class Authority:
    """A host and a port, as a `Host` header names them; no port means the scheme's own."""

    host: str
    port: int | None

    @classmethod
    def read(cls, text: str) -> "Authority | None":
        """What a `Host` header names; None where it is no plain host and port."""
        found = _AUTHORITY.fullmatch(text.lower())
        return None if found is None else _authority(found)

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The address, where the host is one and no name."""
        return address_of(self.host)

    def origin(self, scheme: str) -> "Origin":
        """The origin of pages that are read from here."""
        return Origin(scheme, self.host, self.port or _DEFAULT_PORTS[scheme])


@dataclass(frozen=True)
class Origin:
    """Where a page comes from: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> "Origin | None":
        """An origin as browsers write it; None for `null` and for what is more than an origin."""
        found = _ORIGIN.fullmatch(text.lower())
        if found is None:
            return None
        authority = _authority(found)
        return None if authority is None else authority.origin(found["scheme"])

    @classmethod
    def of_address(cls, url: str) -> "Origin | None":
        """The origin of a page's whole address, as a `Referer` gives it."""
        scheme, mark, rest = url.partition("://")
        return cls.read(scheme + mark + re.split(r"[/?#\\]", rest, maxsplit=1)[0])

    def __str__(self) -> str:
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def spelled(host: str) -> str:
    """A host in the one spelling that is compared: small letters, IPv6 short and in brackets."""
    address = address_of(host)
    if address is None:
        return host.lower()
    return f"[{address}]" if address.version == 6 else str(address)


def _authority(found: re.Match[str]) -> Authority | None:
    host, port = found["host"], found["port"]
    if host.startswith("[") and address_of(host) is None:
        return None
    number = None if port is None else int(port)
    if number is not None and not 0 < number < 65536:
        return None
    return Authority(spelled(host), number)
