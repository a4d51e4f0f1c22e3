"""A real HTTP server on loopback that speaks the hub's dataset API, and misbehaves on request.

Two servers: the hub itself on 127.0.0.1, and its storage on `localhost`, another host to a
client, to which downloads of large files are redirected. `python -m tests.traces.hub_server`
serves a made dataset and prints its endpoint, for processes that measure or are killed.
"""

import argparse
import hashlib
import json
import random
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from assets.traces.git_objects import blob_id, tree_id

DATASET = "own/data"
TOKEN = "hf_secret"


def pointer_of(content: bytes) -> bytes:
    oid = hashlib.sha256(content).hexdigest()
    version = "version https://git-lfs.github.com/spec/v1"
    return f"{version}\noid sha256:{oid}\nsize {len(content)}\n".encode()


@dataclass(frozen=True)
class Request:
    """A request as the server saw it; `host` is `hub` or `storage`."""

    host: str
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class Commit:
    sha: str
    files: dict[str, bytes]
    date: str
    extra_entries: list[dict[str, object]] = field(default_factory=list)


class Answer:
    """What a fault may do in place of the right answer."""

    def __init__(self, handler: "_Handler", content: bytes) -> None:
        self.handler = handler
        self.content = content

    def send(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        self.handler.reply(status, body, dict(headers or {}))

    def break_off_after(self, size_bytes: int) -> None:
        """Announce all of the content, send some of it, hang up."""
        self.handler.start(200, len(self.content), {})
        self.handler.wfile.write(self.content[:size_bytes])
        self.handler.wfile.flush()
        self.handler.connection.shutdown(socket.SHUT_RDWR)
        self.handler.close_connection = True

    def trickle(self, chunk_bytes: int, pause_s: float) -> None:
        """Send the content very slowly."""
        self.handler.start(200, len(self.content), {})
        for start in range(0, len(self.content), chunk_bytes):
            self.handler.wfile.write(self.content[start : start + chunk_bytes])
            self.handler.wfile.flush()
            time.sleep(pause_s)

    def hang_up(self) -> None:
        self.handler.connection.shutdown(socket.SHUT_RDWR)
        self.handler.close_connection = True


Fault = Callable[[Answer], None]


class LoopbackHub:
    """The hub and its storage, until `close`."""

    def __init__(self, *, page_size: int = 1000, delay_s: float = 0.0, log: bool = True) -> None:
        self.page_size = page_size
        self.delay_s = delay_s
        self.commits: dict[str, Commit] = {}
        self.refs: dict[str, str] = {}
        self.large: set[str] = set()
        self.private = False
        self.has_history = True
        self.link_host: str | None = None
        self.storage_url: str | None = None
        self.before: Callable[[Request], None] | None = None
        self.requests: list[Request] = []
        self._log = log
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self._lock = threading.Lock()
        self._hub = self._serve("127.0.0.1", "hub")
        self._storage = self._serve("localhost", "storage")
        self.endpoint = f"http://127.0.0.1:{self._hub.server_port}"
        self.storage = f"localhost:{self._storage.server_port}"

    def commit(
        self, files: Mapping[str, bytes], ref: str = "main", date: str = "2026-01-02T03:04:05.000Z"
    ) -> str:
        """Add a commit and move a branch to it; returns its sha."""
        tree = tree_id({path: blob_id(self.stored(path, data)) for path, data in files.items()})
        sha = hashlib.sha1(f"{tree} {date}".encode()).hexdigest()
        self.commits[sha] = Commit(sha, dict(files), date)
        self.refs[ref] = sha
        return sha

    def stored(self, path: str, data: bytes) -> bytes:
        """What git keeps for a file."""
        return pointer_of(data) if path in self.large else data

    def fail(self, part: str, *faults: Fault) -> None:
        """Answer the next requests whose path contains `part` with these faults, one each."""
        with self._lock:
            self._faults[part].extend(faults)

    def take_fault(self, path: str) -> Fault | None:
        with self._lock:
            for part, faults in self._faults.items():
                if part in path and faults:
                    return faults.pop(0)
        return None

    def note(self, request: Request) -> None:
        if self._log:
            self.requests.append(request)
        if self.before is not None:
            self.before(request)

    def paths(self, part: str = "", host: str | None = None) -> list[str]:
        """Paths requested so far that contain a part."""
        return [r.path for r in self.requests if part in r.path and host in (None, r.host)]

    def close(self) -> None:
        for server in (self._hub, self._storage):
            server.shutdown()
            server.server_close()

    def _serve(self, host: str, role: str) -> "_Server":
        server = _Server((host, 0), _Handler)
        server.hub = self
        server.role = role
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    hub: LoopbackHub
    role: str

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed or hang up are what is tested here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.server.hub
        hub.note(Request(self.server.role, self.command, self.path, dict(self.headers)))
        if hub.delay_s:
            time.sleep(hub.delay_s)
        if self.server.role == "storage":
            self._storage()
        else:
            self._hub()

    def _hub(self) -> None:
        hub = self.server.hub
        if hub.private and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.reply(401, b"", {"X-Error-Message": "Invalid username or password."})
            return
        url = urlsplit(self.path)
        api, resolve = f"/api/datasets/{DATASET}/", f"/datasets/{DATASET}/resolve/"
        if url.path.startswith(resolve):
            sha, _, path = url.path.removeprefix(resolve).partition("/")
            self._resolve(sha, unquote(path))
        elif url.path.startswith(api):
            action, _, revision = url.path.removeprefix(api).partition("/")
            commit = hub.commits.get(hub.refs.get(unquote(revision), revision))
            fault = hub.take_fault(self.path)
            if fault is not None:
                fault(Answer(self, b""))
            elif commit is None:
                self.reply(404, b"", {"X-Error-Code": "RevisionNotFound"})
            elif action == "revision":
                self._revision(commit)
            elif action == "tree":
                self._tree(commit, parse_qs(url.query))
            elif action == "commits" and hub.has_history:
                self._json([{"id": commit.sha, "title": "t", "date": commit.date, "authors": []}])
            else:
                self.reply(404, b"")
        else:
            self.reply(404, b"", {"X-Error-Code": "RepoNotFound"})

    def _revision(self, commit: Commit) -> None:
        etag = f'W/"{commit.sha[:16]}"'
        if self.headers.get("If-None-Match") == etag:
            self.reply(304, b"", {"ETag": etag})
            return
        answer = {"id": DATASET, "sha": commit.sha, "lastModified": commit.date, "siblings": []}
        self._json(answer, {"ETag": etag})

    def _tree(self, commit: Commit, query: dict[str, list[str]]) -> None:
        hub = self.server.hub
        entries = [*_entries(hub, commit), *commit.extra_entries]
        start = int(query.get("cursor", ["0"])[0])
        headers = {}
        if start + hub.page_size < len(entries):
            host = hub.link_host or hub.endpoint
            next_url = f"{host}{urlsplit(self.path).path}?recursive=true&expand=false"
            headers["Link"] = f'<{next_url}&cursor={start + hub.page_size}>; rel="next"'
        self._json(entries[start : start + hub.page_size], headers)

    def _resolve(self, revision: str, path: str) -> None:
        hub = self.server.hub
        commit = hub.commits.get(hub.refs.get(revision, revision))
        if commit is None or path not in commit.files:
            self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = commit.files[path]
        fault = hub.take_fault(path)
        if fault is not None:
            fault(Answer(self, content))
            return
        headers = {"X-Repo-Commit": commit.sha}
        if path in hub.large:
            oid = hashlib.sha256(content).hexdigest()
            base = hub.storage_url or f"http://{hub.storage}"
            headers |= {
                "Location": f"{base}/{oid}?signature=secret",
                "X-Linked-Etag": f'"{oid}"',
                "X-Linked-Size": str(len(content)),
            }
            self.reply(302, b"Found. Redirecting", headers)
        else:
            self._content(content, headers | {"ETag": f'"{blob_id(content)}"'})

    def _storage(self) -> None:
        hub = self.server.hub
        oid = urlsplit(self.path).path.removeprefix("/")
        for commit in hub.commits.values():
            for path, content in commit.files.items():
                if path in hub.large and hashlib.sha256(content).hexdigest() == oid:
                    fault = hub.take_fault(self.path)
                    if fault is not None:
                        fault(Answer(self, content))
                    else:
                        self._content(content, {"ETag": f'"{oid}"'})
                    return
        self.reply(404, b"")

    def _content(self, content: bytes, headers: dict[str, str]) -> None:
        start = self.headers.get("Range", "").removeprefix("bytes=").removesuffix("-")
        if not start:
            self.reply(200, content, headers | {"Accept-Ranges": "bytes"})
        elif int(start) >= len(content):
            self.reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        else:
            rest = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.reply(206, content[int(start) :], headers | {"Content-Range": rest})

    def _json(self, data: object, headers: dict[str, str] | None = None) -> None:
        content_type = {"Content-Type": "application/json; charset=utf-8"}
        self.reply(200, json.dumps(data).encode(), content_type | (headers or {}))

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.start(status, len(body), headers or {})
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body)

    def start(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(length))
        self.end_headers()


def _entries(hub: LoopbackHub, commit: Commit) -> list[dict[str, object]]:
    folders: dict[str, dict[str, object]] = {}
    files: list[dict[str, object]] = []
    for path, content in commit.files.items():
        for end, letter in enumerate(path):
            if letter == "/":
                folder = path[:end]
                folders[folder] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": folder}
        stored = hub.stored(path, content)
        entry: dict[str, object] = {
            "type": "file",
            "oid": blob_id(stored),
            "size": len(content),
            "path": path,
        }
        if path in hub.large:
            oid = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"oid": oid, "size": len(content), "pointerSize": len(stored)}
            entry["xetHash"] = "e" * 64
        files.append(entry)
    return [*folders.values(), *files]


def made_files(count: int, size_bytes: int = 2000) -> dict[str, bytes]:
    """Small documents as the dataset has them: all different, JSON, half of them compressible."""
    source = random.Random(1)
    files = {}
    for number in range(count):
        kind, suffix = ("traces", "jsonl") if number % 2 else ("solutions", "json")
        below = f"op{number % 7}/def{number % 50}" + ("" if number % 2 else "/s")
        text = source.randbytes(size_bytes // 4).hex().ljust(size_bytes - 40, "x")
        path = f"{kind}/author{number % 5}/{below}{number}.{suffix}"
        files[path] = json.dumps({"number": number, "text": text}).encode()
    return files


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--size-bytes", type=int, default=2000)
    parser.add_argument("--delay-s", type=float, default=0.0)
    options = parser.parse_args()
    hub = LoopbackHub(delay_s=options.delay_s, log=False)
    sha = hub.commit(made_files(options.files, options.size_bytes))
    print(json.dumps({"endpoint": hub.endpoint, "storage": hub.storage, "sha": sha}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
