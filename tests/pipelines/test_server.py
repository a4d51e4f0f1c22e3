"""The programs of `kernelindex dev`: how they start, who may share a home, how all end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
import requests
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.liveness import end_dead_runs
from pipelines.server.supervise import Stop, stop_by_signal
from tests.pipelines.conftest import ROOT, Deployment

_START_S = 120.0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(condition: Callable[[], object], seconds: float, log: Path) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited too long: {log.read_text()[-3000:]}"
        time.sleep(0.1)


@dataclass
class Server:
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/server_info", timeout=60).ok
        except requests.ConnectionError:
            return False

    def programs(self) -> dict[str, int]:
        """Process ids of what this server started, by a word of their command line."""
        found = {}
        for pid in family(self.process.pid):
            for word in ("code-server", "api grpc", "webserver", "_daemon"):
                if word in command_of(pid):
                    found[word] = pid
        return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def family(pid: int) -> list[int]:
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except FileNotFoundError:
        return []
    children = [int(child) for text in texts for child in text.split()]
    return children + [one for child in children for one in family(child)]


def lives(pid: int) -> bool:
    """Whether it is there and no zombie; what a process held is free only once it is one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@contextmanager
def started(deployment: Deployment, *before: str) -> Iterator[Server]:
    """A server that answers; nothing of it is left afterwards."""
    port, log = free_port(), deployment.root / "server.log"
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "pipelines.cli", "dev", "--port", str(port)],
            cwd=deployment.root,
            env=deployment.environment,
            stdout=stream,
            stderr=stream,
        )
    server = Server(process, port, log)
    programs: dict[str, int] = {}
    try:
        wait_for(server.answers, _START_S, log)
        wait_for(lambda: len(server.programs()) == 4, 30, log)
        programs = server.programs()
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=90)
        wait_for(lambda: not any(map(lives, programs.values())), 60, log)


@pytest.mark.integration
def test_a_killed_server_leaves_nobody_serving_and_its_home_locked_until_then(
    deployment: Deployment,
) -> None:
    with started(deployment) as server:
        programs = server.programs()
        os.kill(server.process.pid, signal.SIGKILL)
        second = deployment.run("dev", "--port", str(free_port()))
        assert second.returncode == 2
        assert "another server is using" in second.stderr
        wait_for(lambda: not any(map(lives, programs.values())), 30, server.log)
    # The home is free again, and a server starts in it.
    with started(deployment) as server:
        assert server.answers()
    assert server.process.returncode == 0


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_a_script_started_stops_by_signal(
    deployment: Deployment, number: signal.Signals
) -> None:
    # What a shell does for `kernelindex dev &` in a script: INT and QUIT are ignored.
    with started(deployment, "sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh") as server:
        ignored = Path(f"/proc/{server.process.pid}/status").read_text()
        assert "SigIgn" in ignored
        programs = server.programs()
        server.process.send_signal(number)
        assert server.process.wait(timeout=60) == 0
        assert not any(map(lives, programs.values()))
        text = server.log.read_text()
    assert text.splitlines()[0] == f"Dagster UI: http://127.0.0.1:{server.port}  (Ctrl-C stops it)"
    assert "Traceback" not in text
    assert "Deprecat" not in text
    assert "superseded" not in text


@pytest.mark.integration
def test_a_program_that_dies_stops_the_server_and_is_named(deployment: Deployment) -> None:
    with started(deployment) as server:
        programs = server.programs()
        os.kill(programs["_daemon"], signal.SIGKILL)
        assert server.process.wait(timeout=60) == 1
        assert not any(map(lives, programs.values()))
        assert "error: the daemon ended by itself (signal SIGKILL)" in server.log.read_text()


@pytest.fixture
def refused(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What `dev` says on stderr where it starts nothing."""
    for name in ("DAGSTER_HOME", "KERNELINDEX_WAREHOUSE"):
        monkeypatch.setenv(name, deployment.environment[name])

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["dev", *arguments])
        assert result.exit_code == 2
        assert result.stdout == ""
        return result.stderr

    return run


def test_a_taken_port_is_refused_before_anything_starts(refused: Callable[..., str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == (
            f"error: 127.0.0.1:{port} is taken by another program; choose another with --port\n"
        )


@pytest.mark.parametrize("port", ["0", "-1", "65536", "http", ""])
def test_a_wrong_port_is_refused(
    refused: Callable[..., str], deployment: Deployment, port: str
) -> None:
    assert "--port" in refused(f"--port={port}")
    assert not deployment.settings.dagster_home.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KERNELINDEX_UI_ORIGINS", "index.example.org"),
        ("KERNELINDEX_UI_ORIGINS", "https://a.example,https://b.example/ui"),
        ("KERNELINDEX_KEEP_RUNS_DAYS", "a month"),
        ("KERNELINDEX_KEEP_RERUNS_DAYS", "-1"),
        ("KERNELINDEX_KEEP_RERUNS_DAYS", "9" * 30),
    ],
)
def test_a_wrong_setting_is_refused(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    said = refused()
    assert said.startswith(f"error: {name}: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_to_stop_and_then_means_what_it_meant(number: signal.Signals) -> None:
    def seen(*_: object) -> None:
        raise AssertionError

    before = signal.signal(number, seen)
    try:
        with stop_by_signal() as stop:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            assert stop == Stop(asked=2)
        assert signal.getsignal(number) is seen
    finally:
        signal.signal(number, before)


def test_who_outlives_the_terminal_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_by_signal() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.asked == 0
    finally:
        signal.signal(signal.SIGHUP, before)


CHILD = [sys.executable, "-m", "pipelines.server.child"]


def test_a_child_ends_with_its_starter_and_takes_its_own_along(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(
        "import subprocess, sys, time\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(100)']\n"
        "print(subprocess.Popen(sleep).pid, flush=True)\n"
        "time.sleep(100)\n"
    )
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [*CHILD, str(reading), "sleeper"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[reading],
        start_new_session=True,
    )
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    os.close(reading)
    assert child.poll() is None
    os.close(writing)
    assert child.wait(timeout=10) != 0
    wait_for(lambda: not lives(grandchild), 10, tmp_path / "sleeper.py")
    child.stdout.close()


LAUNCH = (
    'mutation{launchRun(executionParams:{selector:{repositoryName:"__repository__",'
    'repositoryLocationName:"pipelines.definitions",jobName:"ingest"},runConfigData:"{}"})'
    "{__typename ... on LaunchRunSuccess {run {runId}}}}"
)


@pytest.mark.integration
def test_a_run_that_died_elsewhere_blocks_nobody(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(deployment.settings.dagster_home))
    started_runs = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
    with started(deployment) as server, dg.DagsterInstance.get() as instance:

        def state(run_id: str) -> str:
            run = instance.get_run_by_id(run_id)
            assert run is not None
            return run.status.value

        # As after the first run of the queue, which Dagster lets by before it knows the pool.
        instance.event_log_storage.initialize_concurrency_limit_to_default("warehouse")
        elsewhere = subprocess.Popen(
            [sys.executable, "-m", "pipelines.cli", "ingest"],
            env=deployment.environment,
            cwd=deployment.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: instance.get_runs(filters=started_runs), 90, server.log)
        [theirs] = [run.run_id for run in instance.get_runs(filters=started_runs)]
        # It does nothing any more, and lives.
        elsewhere.send_signal(signal.SIGSTOP)
        answer = requests.post(f"{server.url}/graphql", json={"query": LAUNCH}, timeout=60).json()
        ours = answer["data"]["launchRun"]["run"]["runId"]
        time.sleep(12)
        assert (state(theirs), state(ours)) == ("STARTED", "QUEUED")
        elsewhere.kill()
        elsewhere.wait()
        wait_for(lambda: state(theirs) == "FAILURE", 30, server.log)
        wait_for(lambda: state(ours) == "STARTED", 60, server.log)

        # The server and all that it runs are killed at once, as by a machine that loses power.
        lock = deployment.settings.dagster_home / "alive" / f"{ours}.lock"
        wait_for(lock.exists, 30, server.log)
        everything = [server.process.pid, *family(server.process.pid)]
        for pid in everything:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.process.wait()
        wait_for(lambda: not any(map(lives, everything)), 30, server.log)
        assert state(ours) == "STARTED"
        # What a process held is free when the last of its threads has gone.
        home = deployment.settings.dagster_home
        wait_for(lambda: end_dead_runs(instance, home) == [ours], 10, server.log)
        [event] = instance.all_logs(ours, of_type=dg.DagsterEventType.PIPELINE_FAILURE)
        assert event.dagster_event is not None
        said = event.dagster_event.message or ""
        assert said.startswith("The server's process of ingest, process ")
        deployment.ingest()
