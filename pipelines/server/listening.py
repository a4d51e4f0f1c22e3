"""The addresses of a server, bound before anything else starts, so that nobody else takes them."""

import errno
import socket

_BACKLOG = 2048


class ListenError(Exception):
    """The address cannot be listened on; the message says what to do."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of the host.

    Raises:
        ListenError: the host has no address here, or the port is taken or not allowed.
    """
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError) as error:
        raise ListenError(f"{host}: no such address; choose another with --host") from error
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
        try:
            sockets.append(_bound(family, address))
        except OSError as error:
            # A name may stand for addresses that this machine has not, as localhost for ::1.
            missing = error
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                continue
            _close(sockets)
            raise ListenError(_explained(host, port, error)) from error
    if not sockets:
        raise ListenError(_explained(host, port, missing)) from missing
    return sockets


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _close(sockets: list[socket.socket]) -> None:
    for one in sockets:
        one.close()


def _explained(host: str, port: int, error: OSError | None) -> str:
    if error is not None and error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is taken by another program; choose another with --port"
    if error is not None and error.errno in (errno.EACCES, errno.EPERM):
        return f"{host}:{port}: this user may not listen there; choose a --port above 1023"
    if error is not None and error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine; choose another with --host"
    reason = error.strerror if error is not None else "no address"
    return f"{host}:{port}: cannot listen there ({reason})"
