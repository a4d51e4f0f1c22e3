"""Who is answered by the UI's server: over real connections, with what a browser would send."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pipelines.server.guard import Guard, Rules
from pipelines.server.listening import ListenError, listen
from pipelines.server.origins import Authority, Origin

PUBLIC = "https://index.example.org"
JSON = ("Content-Type", "application/json")


@dataclass
class Served:
    """A server behind the guard; `reached` is what came through."""

    port: int
    reached: list[str]

    def ask(self, *headers: tuple[str, str], method: str = "GET", path: str = "/runs") -> int:
        """The status of a request with exactly these headers."""
        return self.answer(*headers, method=method, path=path)[0]

    def answer(
        self, *headers: tuple[str, str], method: str = "GET", path: str = "/runs"
    ) -> tuple[int, dict[str, str], str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, text

    @property
    def host(self) -> tuple[str, str]:
        return ("Host", f"localhost:{self.port}")

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"


def behind(rules: Rules, http: str = "auto") -> Iterator[Served]:
    reached: list[str] = []

    async def answer(request: Request) -> PlainTextResponse:
        reached.append(f"{request.method} {request.url.path}?{request.url.query}")
        return PlainTextResponse("secret", headers={"Access-Control-Allow-Origin": "*"})

    async def talk(websocket: WebSocket) -> None:
        reached.append("websocket")
        await websocket.accept(subprotocol="graphql-ws")
        await websocket.send_text("secret")
        await websocket.close()

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    app = Starlette(
        routes=[
            WebSocketRoute("/graphql", talk),
            Route("/{path:path}", answer, methods=methods),
        ]
    )
    [listener] = listen("127.0.0.1", _free_port())
    server = uvicorn.Server(uvicorn.Config(Guard(app, rules), log_level="error", http=http))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield Served(listener.getsockname()[1], reached)
    finally:
        server.should_exit = True
        thread.join()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module", params=["httptools", "h11"])
def running(request: pytest.FixtureRequest) -> Iterator[Served]:
    origin = Origin.read(PUBLIC)
    assert origin is not None
    yield from behind(Rules("127.0.0.1", frozenset({origin})), request.param)


@pytest.fixture
def served(running: Served) -> Served:
    running.reached.clear()
    return running


# By whose name


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "localhost:3000", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:3000", "127.9.9.9",
        "[::1]", "[::1]:3000", "[0:0:0:0:0:0:0:1]:80", "index.example.org",
        "INDEX.example.org:443",
    ],
)  # fmt: skip
def test_this_machine_and_the_public_name_are_answered(served: Served, host: str) -> None:
    assert served.ask(("Host", host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:3000", "localhost.evil.example", "evil-localhost",
        "localhost@evil.example", "evil.example@localhost", "localhost:3000@evil.example",
        "localhost/evil", "localhost:", "localhost:0", "localhost:99999", "localhost:80:80",
        "localhost.", "127.0.0.1.", "127.0.0.1.evil.example", "127.1", "0x7f.0.0.1", "2130706433",
        "0.0.0.0", "[::]", "[::1", "::1", "[::ffff:10.0.0.1]", "10.0.0.1", "192.168.1.5:3000",
        "index.example.org:80", "index.example.org:3000", "www.index.example.org",
        "xindex.example.org", "localhost, evil.example", "localhost evil.example", "löcalhost",
        "", "*",
    ],
)  # fmt: skip
def test_every_other_name_is_refused(served: Served, host: str) -> None:
    status = served.ask(("Host", host.encode().decode("latin-1")))
    assert status in (400, 421)
    assert served.reached == []


def test_a_request_without_a_host_is_refused(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(b"GET /runs HTTP/1.0\r\n\r\n")
        assert b" 400 " in connection.recv(1000).splitlines()[0]
    assert served.reached == []


def test_listening_everywhere_answers_to_the_address_that_was_reached() -> None:
    rules = Rules("0.0.0.0")
    for served in behind(rules):
        assert served.ask(("Host", f"0.0.0.0:{served.port}")) == 200
        assert served.ask(("Host", f"127.0.0.1:{served.port}")) == 200
        # An address of another machine, and a name, may be anybody's.
        assert served.ask(("Host", f"10.1.2.3:{served.port}")) == 421
        assert served.ask(("Host", f"evil.example:{served.port}")) == 421


def test_a_name_that_was_listened_on_is_this_server() -> None:
    for served in behind(Rules("Workstation.lan")):
        assert served.ask(("Host", "workstation.lan:3000")) == 200
        assert served.ask(("Host", "workstation.lan.evil.example")) == 421


# For which page


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_own_pages_and_programs_are_answered(served: Served, method: str) -> None:
    for headers in (
        [],
        [("Origin", served.origin)],
        [("Origin", served.origin.upper())],
        [("Sec-Fetch-Site", "same-origin"), ("Referer", f"{served.origin}/runs?a=http://b@c/")],
        [("Sec-Fetch-Site", "none")],
        [("Referer", "")],
    ):
        assert served.ask(served.host, JSON, *headers, method=method) == 200, headers


def test_the_public_address_has_its_own_pages(served: Served) -> None:
    host = ("Host", "index.example.org")
    assert served.ask(host, JSON, ("Origin", PUBLIC), method="POST") == 200
    assert served.ask(host, JSON, ("Referer", f"{PUBLIC}/runs"), method="POST") == 200
    for origin in ("http://index.example.org", f"{PUBLIC}:444", served.origin):
        assert served.ask(host, JSON, ("Origin", origin), method="POST") == 403
    # A proxy that does not pass the name on makes its pages foreign ones.
    assert served.ask(served.host, JSON, ("Origin", PUBLIC), method="POST") == 403


FOREIGN = [
    "null", "", "https://evil.example", "http://evil.example", "http://localhost",
    "http://localhost:1", "http://127.0.0.1:{port}", "http://[::1]:{port}",
    "https://localhost:{port}", "http://localhost:{port}@evil.example",
    "http://evil.example@localhost:{port}", "http://localhost.evil.example:{port}",
    "http://localhost:{port}.evil.example", "http://localhost:{port}/", "localhost:{port}",
    "http://localhost:{port} http://evil.example", "http://localhost:{port}, http://evil.example",
    "file://", "chrome-extension://abcdefgh", "http:localhost:{port}", "http://localhost:0{port}x",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_of_another_origin_is_refused(served: Served, origin: str, method: str) -> None:
    given = ("Origin", origin.format(port=served.port))
    assert served.ask(served.host, JSON, given, method=method) == 403
    # Whatever else it says of itself.
    said = [("Sec-Fetch-Site", "same-origin"), ("Referer", f"{served.origin}/")]
    assert served.ask(served.host, JSON, given, *said, method=method) == 403
    assert served.reached == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "", "new-value"])
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_a_request_across_sites_is_refused(served: Served, site: str, method: str) -> None:
    assert served.ask(served.host, JSON, ("Sec-Fetch-Site", site), method=method) == 403
    for mode, kind in (("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")):
        headers = [
            ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", kind),
        ]  # fmt: skip
        assert served.ask(served.host, JSON, *headers, method=method) == 403
    assert served.reached == []


@pytest.mark.parametrize(
    "referer",
    ["https://evil.example/", "http://evil.example@localhost:{port}/", "about:blank",
     "http://localhost:{port}@evil.example/", "http://localhost:{port}.evil.example/", "x",
     "http://localhost:{port}evil/", "http:\\\\localhost:{port}/"],
)  # fmt: skip
def test_a_page_that_names_only_itself_is_refused(served: Served, referer: str) -> None:
    given = ("Referer", referer.format(port=served.port))
    assert served.ask(served.host, given) == 403
    assert served.ask(served.host, JSON, given, method="POST") == 403
    assert served.reached == []


LINK = [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Dest", "document"), ("Referer", "https://chat.example/"),
]  # fmt: skip


def test_a_link_from_elsewhere_opens_a_page_and_nothing_else(served: Served) -> None:
    assert served.ask(served.host, *LINK, path="/runs/1") == 200
    assert served.ask(served.host, *LINK, path="/") == 200
    for path in ("/graphql", "/logs/a/b", "/download_debug/1", "/notebook?path=a", "//graphql",
                 "/dagit/notebook", "/report_asset_materialization/x", "/%67raphql"):  # fmt: skip
        assert served.ask(served.host, *LINK, ("Accept", "text/html"), path=path) == 403, path
    assert served.ask(served.host, *LINK, JSON, method="POST") == 403
    assert served.ask(("Host", "evil.example"), *LINK) == 421
    assert served.ask(served.host, *LINK, ("Origin", "https://chat.example")) == 403
    assert served.reached == ["GET /runs/1?", "GET /?"]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("Host", "localhost", "evil.example"),
        ("Origin", "http://localhost", "https://evil.example"),
        ("Content-Type", "application/json", "text/plain"),
        ("Referer", "http://localhost/", "https://evil.example/"),
        ("Sec-Fetch-Site", "same-origin", "cross-site"),
        ("Accept", "*/*", "text/html"),
    ],
)
def test_a_header_that_stands_twice_is_refused(
    served: Served, name: str, first: str, second: str
) -> None:
    others = [header for header in (("Host", "localhost"), JSON) if header[0] != name]
    for values in ((first, second), (second, first)):
        twice = [(name, values[0]), (name.lower(), values[1])]
        assert served.ask(*others, *twice, method="POST", path="/graphql") == 400
    assert served.reached == []


# With which method


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "query",
    ["query=mutation{launchRun{__typename}}", "query=%7Bversion%7D", "operationName=X", ""],
)
def test_no_query_comes_by_get(served: Served, method: str, query: str) -> None:
    for path in ("/graphql", "/%67raphql", "/graphql/", "//graphql"):
        assert served.ask(served.host, method=method, path=f"{path}?{query}") == 405
    assert served.reached == []


def test_the_page_of_queries_is_read_without_its_query(served: Served) -> None:
    page = [served.host, ("Accept", "text/html,*/*")]
    assert served.ask(*page, path="/graphql?query=mutation{x}") == 200
    assert served.ask(served.host, JSON, method="POST", path="/graphql?query=mutation{x}") == 200
    assert served.ask(served.host, path="/runs?q=1") == 200
    assert served.reached == ["GET /graphql?", "POST /graphql?", "GET /runs?q=1"]


@pytest.mark.parametrize(
    "kind",
    [
        None, "", "text/plain", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x", "text/plain; application/json",
        "application/graphql", "application/json, text/plain",
        "text/plain;x=application/json", "application/jsonx", "xapplication/json",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/graphql", "/report_asset_materialization/a"])
def test_what_a_form_can_send_changes_nothing(served: Served, kind: str | None, path: str) -> None:
    headers = [] if kind is None else [("Content-Type", kind)]
    assert served.ask(served.host, *headers, method="POST", path=path) == 415
    assert served.reached == []


def test_json_may_name_its_letters(served: Served) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON ;x"):
        assert served.ask(served.host, ("Content-Type", kind), method="POST") == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
def test_other_methods_are_refused(served: Served, method: str) -> None:
    assert served.ask(served.host, JSON, method=method) in (400, 405)
    assert served.reached == []


# What an answer allows


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_no_answer_may_be_framed_or_read_elsewhere(served: Served, host: str) -> None:
    _, headers, _ = served.answer(("Host", host))
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["content-security-policy"] == "frame-ancestors 'self'"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_a_refusal_says_what_to_do_and_repeats_nothing(served: Served) -> None:
    status, _, text = served.answer(("Host", "<script>.example"))
    assert status == 421
    assert "KERNELINDEX_UI_ORIGINS" in text
    assert "script" not in text


# Websockets


def test_a_websocket_of_an_own_page_opens(served: Served) -> None:
    url = f"ws://localhost:{served.port}/graphql"
    for origin in (served.origin, None):
        with connect(url, origin=origin, subprotocols=["graphql-ws"]) as websocket:
            assert websocket.recv() == "secret"


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://localhost:1"])
def test_a_websocket_of_another_page_does_not(served: Served, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://localhost:{served.port}/graphql", origin=origin)
    assert served.reached == []


def test_a_websocket_by_another_name_does_not(served: Served) -> None:
    with (
        socket.create_connection(("127.0.0.1", served.port)) as through,
        pytest.raises(InvalidStatus, match="403"),
    ):
        connect("ws://evil.example/graphql", sock=through)
    with pytest.raises(InvalidStatus, match="403"):
        connect(
            f"ws://localhost:{served.port}/graphql",
            additional_headers={"Sec-Fetch-Site": "cross-site"},
        )
    assert served.reached == []


# How names are read, and where is listened


def test_an_address_has_one_spelling() -> None:
    assert Origin.read("HTTP://[0:0::1]:80") == Origin("http", "[::1]", 80)
    assert str(Origin("http", "[::1]", 80)) == "http://[::1]"
    assert str(Origin("https", "a.example", 8443)) == "https://a.example:8443"
    assert Origin.of_address("https://a.example/x?y@z") == Origin("https", "a.example", 443)
    for text in ("http://[::g]", "http://[1.2.3.4]x", "ftp://a", "http://", "http://a b", "a"):
        assert Origin.read(text) is None
    assert Authority.read("[fe80::1]:3000") == Authority("[fe80::1]", 3000)


def test_a_port_that_is_taken_is_refused() -> None:
    [held] = listen("127.0.0.1", _free_port())
    port = held.getsockname()[1]
    with held, pytest.raises(ListenError, match=f"127.0.0.1:{port} is taken by another program"):
        listen("127.0.0.1", port)
    # Nothing stays open: the next one has it.
    [again] = listen("127.0.0.1", port)
    again.close()


def test_a_host_that_is_not_here_is_refused() -> None:
    for host in ("no-such-host.invalid", "192.0.2.1", "a" * 300, "x..y"):
        with pytest.raises(ListenError, match="--host"):
            listen(host, _free_port())
