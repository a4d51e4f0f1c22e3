"""Connections that are cut off when their time is over, whatever trickles in.

A socket's own timeout counts from the last byte, so that a byte now and then holds a request for
ever: in a status line, among headers, in the length of a chunk. Here a thread shuts the socket
down, and whoever reads it sees the connection end. What to ask and how often is decided elsewhere.
"""

import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.poolmanager import PoolManager
from urllib3.response import BaseHTTPResponse

_LOOK_EVERY_S = 0.25
_asked = threading.local()


@contextmanager
def until(monotonic_s: float) -> Iterator[None]:
    """Requests that this thread sends in the block end by then, body included."""
    _asked.deadline = monotonic_s
    try:
        yield
    finally:
        del _asked.deadline


class _Watch:
    """Shuts sockets down when their time is over; one thread, which ends when none is left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: weakref.WeakKeyDictionary[socket.socket, float] = (
            weakref.WeakKeyDictionary()
        )
        self._is_looking = False

    def until(self, watched: socket.socket, monotonic_s: float) -> None:
        with self._lock:
            self._deadlines[watched] = monotonic_s
            if not self._is_looking:
                self._is_looking = True
                threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK_EVERY_S)
            now = time.monotonic()
            with self._lock:
                # A closed socket has no number any more.
                over = [s for s, at in self._deadlines.items() if at < now or s.fileno() < 0]
                for watched in over:
                    del self._deadlines[watched]
                if not self._deadlines:
                    self._is_looking = False
            for watched in over:
                with suppress(OSError):
                    # Not the method of an SSL socket, which would take its state from a reader.
                    socket.socket.shutdown(watched, socket.SHUT_RDWR)
            if not self._is_looking:
                return


_watch = _Watch()


def _watched(connection: HTTPConnection) -> None:
    monotonic_s: float | None = getattr(_asked, "deadline", None)
    if monotonic_s is not None and isinstance(connection.sock, socket.socket):
        _watch.until(connection.sock, monotonic_s)


class _PlainConnection(HTTPConnection):
    def getresponse(self) -> Any:
        _watched(self)
        return super().getresponse()


class _SecureConnection(HTTPSConnection):
    def getresponse(self) -> Any:
        _watched(self)
        return super().getresponse()


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class DeadlineAdapter(HTTPAdapter):
    """An adapter whose requests end when `until` says so, through proxies too."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*arguments, **options)
        _use_pools(self.poolmanager)

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> PoolManager:
        """The pools of connections through a proxy."""
        manager: PoolManager = super().proxy_manager_for(*arguments, **options)
        _use_pools(manager)
        return manager


def _use_pools(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}


def pieces(body: BaseHTTPResponse, size_bytes: int) -> Iterator[bytes]:
    """A body as it arrives, in pieces of at most a size; none is waited for until it is full."""
    while piece := body.read1(size_bytes, decode_content=True):
        yield piece
