"""Who may ask the Dagster UI's server: its own pages, and programs that are no browser.

Dagster's server answers anybody, under any host name, mutations by GET included. A person who has
it open visits other pages in the same browser, and those must not start, stop or read anything.
So every request passes these rules first:

- `Host` is a loopback name or address, the address that the server was told to listen on, or a
  public origin of the deployment's settings. A foreign name that resolves to this machine (DNS
  rebinding) is none of them.
- Whatever a browser says about the page that asks (`Origin`, `Referer`, `Sec-Fetch-Site`) says
  that it is a page of this very server. Following a link to a page of the UI is no more than that.
- A change comes by POST with JSON, which no form and no image can send; GET never carries a query.

No authentication here: who reaches the port as a program may do everything (docs/mirror.md).
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.server.origins import Authority, Origin, address_of, spelled

GRAPHQL = "/graphql"
# What answers with something other than the UI's page; nobody follows a link from elsewhere to it.
_NO_PAGES = frozenset(
    {
        "dagit",
        "download_debug",
        "graphql",
        "logs",
        "notebook",
        "report_asset_check",
        "report_asset_materialization",
        "report_asset_observation",
    }
)
# Twice in one request, two readers might each take another one.
_ONCE = (
    "host", "origin", "referer", "content-type", "accept",
    "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest",
)  # fmt: skip
_HEADERS = {
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered; the reason is for the person who wonders."""

    status: int
    reason: str


@dataclass(frozen=True)
class Asked:
    """What the rules look at in a request or a websocket's opening."""

    method: str
    path: str
    headers: Mapping[str, Sequence[str]]
    listener: str | None

    @classmethod
    def of(cls, scope: Scope) -> "Asked":
        """The request of an ASGI scope; a websocket is opened by a GET."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1").strip()
            )
        listener = scope.get("server")
        return cls(
            method=scope.get("method", "GET"),
            path=scope["path"],
            headers=headers,
            listener=listener[0] if listener else None,
        )

    def header(self, name: str) -> str | None:
        """The header's value, or None."""
        values = self.headers.get(name)
        return values[0] if values else None

    @property
    def opens_a_page(self) -> bool:
        """Whether a person goes to a page of the UI, in a window of its own."""
        return (
            self.method == "GET"
            and self.header("sec-fetch-mode") == "navigate"
            and self.header("sec-fetch-dest") == "document"
            and self.path.lstrip("/").split("/", 1)[0] not in _NO_PAGES
        )


@dataclass(frozen=True)
class Rules:
    """The rules of one server: the host it was told to listen on, and its public origins."""

    host: str
    public: frozenset[Origin] = frozenset()

    def refusal(self, asked: Asked) -> Refusal | None:
        """Why this request is refused, or None."""
        twice = [name for name in _ONCE if len(asked.headers.get(name, ())) > 1]
        if twice:
            return Refusal(400, f"the header {twice[0]} stands twice in this request")
        return self._of_host(asked) or self._of_page(asked) or _of_method(asked)

    def _of_host(self, asked: Asked) -> Refusal | None:
        if self._own(asked):
            return None
        return Refusal(
            421 if asked.header("host") else 400,
            "this server does not go by that host name; open it as localhost, or name its public "
            "address in KERNELINDEX_UI_ORIGINS",
        )

    def _own(self, asked: Asked) -> frozenset[Origin]:
        """The origins that a page of this server can have, under the name that was asked for."""
        authority = Authority.read(asked.header("host") or "")
        if authority is None:
            return frozenset()
        named = {one for one in self.public if authority.origin(one.scheme) == one}
        if self._is_here(authority, asked.listener):
            named.add(authority.origin("http"))
        return frozenset(named)

    def _is_here(self, authority: Authority, listener: str | None) -> bool:
        address = authority.address
        if authority.host in ("localhost", spelled(self.host)):
            return True
        if address is None:
            return False
        told = address_of(self.host)
        # Told to listen everywhere, it is also the address at which this request came in.
        everywhere = told is not None and told.is_unspecified and listener is not None
        return address.is_loopback or (everywhere and address == address_of(listener or ""))

    def _of_page(self, asked: Asked) -> Refusal | None:
        own = self._own(asked)
        origin, referer = asked.header("origin"), asked.header("referer")
        if origin is not None and Origin.read(origin) not in own:
            return Refusal(403, "a page of another origin asks; only this server's own pages may")
        if asked.opens_a_page and origin is None:
            return None
        if asked.header("sec-fetch-site") not in (None, "same-origin", "none"):
            return Refusal(403, "a page of another site asks; only this server's own pages may")
        if referer and Origin.of_address(referer) not in own:
            return Refusal(403, "a page from elsewhere refers here; open this address by itself")
        return None


def _of_method(asked: Asked) -> Refusal | None:
    if asked.method == "POST":
        kind = (asked.header("content-type") or "").split(";", 1)[0].strip().lower()
        if kind == "application/json":
            return None
        return Refusal(415, "what is sent here must be application/json")
    if asked.method not in ("GET", "HEAD"):
        return Refusal(405, "only GET, HEAD and POST are answered here")
    return None


class Guard:
    """An ASGI application behind the rules."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, pass on or refuse."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        asked = Asked.of(scope)
        refusal = self._rules.refusal(asked)
        if refusal is None and scope["type"] == "http":
            refusal = _of_query(asked)
        if refusal is None:
            await self._app(_without_query(scope), receive, _with_headers(scope, send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.reason})
        else:
            answer = PlainTextResponse(f"{refusal.reason}\n", status_code=refusal.status)
            await answer(scope, receive, _with_headers(scope, send))


def _of_query(asked: Asked) -> Refusal | None:
    # Dagster serves its own page of queries to whoever accepts HTML, and answers all others.
    page = "text/html" in (asked.header("accept") or "")
    if _is_graphql(asked.path) and asked.method != "POST" and not page:
        return Refusal(405, "queries come by POST, as application/json")
    return None


def _is_graphql(path: str) -> bool:
    return path.strip("/") == GRAPHQL.strip("/")


def _without_query(scope: Scope) -> Scope:
    """The same request; what stands in a query's address never reaches Dagster."""
    return {**scope, "query_string": b""} if _is_graphql(scope["path"]) else scope


def _with_headers(scope: Scope, send: Send) -> Send:
    """Answers that no other page may frame, embed or read."""

    async def sending(message: Message) -> None:
        if scope["type"] == "http" and message["type"] == "http.response.start":
            _protect(message)
        await send(message)

    return sending


def _protect(message: MutableMapping[str, Any]) -> None:
    headers = MutableHeaders(scope=message)
    for name in [name for name in headers if name.startswith("access-control-")]:
        del headers[name]
    for name, value in _HEADERS.items():
        headers[name] = value
    # Beside the policy of the page itself: a browser obeys both.
    headers.append("Content-Security-Policy", "frame-ancestors 'self'")
