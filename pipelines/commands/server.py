"""`kernelindex dev`: the Dagster UI, once per DAGSTER_HOME."""

from typing import Annotated

import typer

from pipelines.commands.output import fail, say, stdout
from pipelines.instance import InstanceError, only_server, prepare_home
from pipelines.server.listening import ListenError, listen
from pipelines.server.supervise import ServerError, run, stop_by_signal
from pipelines.settings import Keeping, Settings, SettingsError, public_origins


def dev(
    port: Annotated[int, typer.Option(min=1, max=65535, help="port of the web interface")] = 3000,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
) -> None:
    """Open the Dagster UI: assets, runs, schedules, reruns."""
    try:
        settings = Settings.from_environment()
        # Read here only so that a wrong value is refused before anything starts.
        public_origins(), Keeping.from_environment()
        for line in prepare_home(settings.dagster_home):
            say(line)
        with stop_by_signal() as stop, only_server(settings.dagster_home) as lock:
            sockets = listen(host, port)
            stdout.print(f"Dagster UI: {_address(host, port)}  (Ctrl-C stops it)")
            run(host, sockets, lock, stop)
    except (InstanceError, ListenError, SettingsError) as error:
        fail(str(error))
    except ServerError as error:
        fail(str(error), code=1)


def _address(host: str, port: int) -> str:
    """What a browser on this machine opens."""
    name = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"
