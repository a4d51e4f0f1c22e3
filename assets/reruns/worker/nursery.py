"""The nursery: a process that imports torch once and forks every child process from that state.

A fork is a fresh process without a CUDA context (the nursery never touches CUDA), and costs
milliseconds where importing torch costs seconds. The nursery holds no documents, seeds or
results, so a child inherits none.

Requests come as one JSON line on a Unix socket together with two file descriptors: the child's
end of its own channel, and its log file. The answer is the child's process id. When the socket
closes, the nursery exits, and the kernel kills what is left of its children.
"""

import contextlib
import json
import os
import signal
import socket
import sys

from . import isolation

_MAX_REQUEST_BYTES = 65536


def main(descriptor: int, parent: int) -> None:
    """Serve fork requests on the socket with this file descriptor until it closes."""
    isolation.die_with_parent(parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the supervisor decides when to stop
    from . import child  # imports torch

    requests = socket.socket(fileno=descriptor)
    requests.sendall(b"ready\n")
    while True:
        content, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST_BYTES, 2)
        if not content:
            return
        settings = json.loads(content)
        _reap(settings.pop("released"))
        nursery = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                requests.close()
                _settle(nursery, descriptors[1])
                child.main(socket.socket(fileno=descriptors[0]), settings)
                status = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        for inherited in descriptors:
            os.close(inherited)
        requests.sendall(f"{pid}\n".encode("ascii"))


def _settle(nursery: int, log: int) -> None:
    os.setsid()
    isolation.die_with_parent(nursery)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _reap(released: list[int]) -> None:
    """Collect children that the supervisor will not signal again.

    Others stay zombies when they end, so that their process ids are not given to anyone else.
    """
    for pid in released:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
