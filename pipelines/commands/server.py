"""`kernelindex dev`: the Dagster UI, once per DAGSTER_HOME."""

import signal
import subprocess
import sys
from typing import Annotated

import typer

from pipelines.commands.output import fail, say, stdout
from pipelines.instance import InstanceError, only_server, prepare_home
from pipelines.settings import Settings


def dev(
    port: Annotated[int, typer.Option(help="port of the web interface")] = 3000,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
) -> None:
    """Open the Dagster UI: assets, runs, schedules, reruns."""
    settings = Settings.from_environment()
    try:
        for line in prepare_home(settings.dagster_home):
            say(line)
        with only_server(settings.dagster_home):
            stdout.print(f"Dagster UI: http://{host}:{port}  (Ctrl-C stops it)")
            raise typer.Exit(_serve(host, port))
    except InstanceError as error:
        fail(str(error))


def _serve(host: str, port: int) -> int:
    command = [sys.executable, "-m", "dagster", "dev", "-m", "pipelines.definitions"]
    process = subprocess.Popen([*command, "-h", host, "-p", str(port)])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: process.send_signal(received))
    return process.wait()
