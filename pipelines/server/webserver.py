"""The Dagster UI behind its guard: `python -m pipelines.server.webserver`, started by `dev`."""

import argparse
import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import dagster as dg
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.interrupts import setup_interrupt_handlers
from dagster._utils.log import configure_loggers
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from starlette.types import ASGIApp

from pipelines.server.guard import Guard, Rules
from pipelines.settings import public_origins

_STATEMENT_TIMEOUT_MS = 15_000
_POOL_RECYCLE_S = 3600
_POOL_OVERFLOW = 20
_POLL_MS = 2000
# Pages keep their connections open; who stops the server does not wait for them.
_SHUTDOWN_S = 3


def main() -> None:
    """Serve on sockets that the starter has bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True, help="what the sockets were told to listen on")
    parser.add_argument("--workspace", required=True, help="the file that names the code server")
    parser.add_argument("--socket", type=int, action="append", required=True)
    given = parser.parse_args()
    configure_loggers(log_level="WARNING")
    setup_interrupt_handlers()
    rules = Rules(given.host, public_origins())
    with dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _POOL_RECYCLE_S, _POOL_OVERFLOW)
        with WorkspaceProcessContext(
            instance,
            version=__version__,
            workspace_load_target=WorkspaceFileTarget(paths=[given.workspace]),
        ) as workspace:
            app = create_app_from_workspace_process_context(
                workspace, live_data_poll_rate=_POLL_MS, lifespan=_lifespan
            )
            serve(Guard(app, rules), [socket.socket(fileno=number) for number in given.socket])


def serve(app: ASGIApp, sockets: list[socket.socket]) -> None:
    """Answer on these sockets until a signal says to stop."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        # Who asks is what the connection says; nothing here believes a forwarded header.
        proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    # The signal that stopped the server comes once more after it has; that is no error.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=sockets)


@asynccontextmanager
async def _lifespan(_: ASGIApp) -> AsyncIterator[None]:
    # A server that is stopped cancels this; that is no error.
    with suppress(asyncio.CancelledError):
        yield


if __name__ == "__main__":
    main()
