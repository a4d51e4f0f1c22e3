"""Reruns on different GPUs run at once, those on one GPU one after the other."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import requests

from assets.reruns.asset import GPU_TAG, gpu_of
from assets.reruns.lane import jobs, worker_file
from assets.tables.warehouse import Warehouse
from pipelines.instance import prepare_home
from pipelines.jobs import CONTROLLED_RERUN
from pipelines.run_coordinator import RunCoordinator
from tests.pipelines.conftest import ROOT
from tests.reruns.index import a_run, rows

HELD_WORKER = Path(__file__).with_name("held_worker.py")


def config(**fields: object) -> dict[str, Any]:
    return {"ops": {"rerun_requests": {"config": {"reason": "a test", **fields}}}}


# How a run is named


@pytest.mark.parametrize(
    ("selected", "fields", "name"),
    [
        ("local", {}, "local-0"),
        ("local", {"gpu": "3"}, "local-3"),
        ("local", {"gpu": "cpu", "launcher": "configured"}, "local-cpu"),
        ("local", {"launcher": "ssh"}, "ssh-0"),
        ("ssh", {"gpu": "1"}, "ssh-1"),
        ("ssh", {"gpu": "1", "launcher": "local"}, "local-1"),
        ("slurm", {}, None),
        ("local", {"launcher": "slurm"}, None),
    ],
)
def test_a_rerun_is_named_by_launcher_and_gpu(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    selected: str,
    fields: dict[str, object],
    name: str | None,
) -> None:
    monkeypatch.delenv("KERNELINDEX_LAUNCHERS", raising=False)
    (tmp_path / "reruns").mkdir()
    (tmp_path / "reruns" / "launchers.json").write_text(json.dumps({"selected": selected}))
    assert gpu_of(config(**fields), Warehouse(tmp_path)) == name


@pytest.mark.parametrize(
    "run_config",
    [{}, {"ops": None}, {"ops": {"rerun_requests": []}}, {"ops": {"trace_files": {"config": {}}}}],
)
def test_other_runs_need_no_gpu(tmp_path: Path, run_config: dict[str, Any]) -> None:
    assert gpu_of(run_config, Warehouse(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_new_home_queues_reruns_by_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    prepare_home(tmp_path / "home")
    with dg.DagsterInstance.get() as instance:
        assert isinstance(instance.run_coordinator, RunCoordinator)
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        [limit] = queue.tag_concurrency_limits
    assert limit == {"key": GPU_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}


# In a server, with real workers


@dataclass(frozen=True)
class Server:
    """A running UI, asked as its pages ask."""

    url: str

    def ask(self, query: str, **variables: Any) -> Any:
        answer = requests.post(
            f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=60
        ).json()
        assert "errors" not in answer, answer
        return answer["data"]

    def launch(self, tags: Mapping[str, str] | None = None, **fields: Any) -> str:
        [found] = self.ask(
            "{repositoriesOrError {... on RepositoryConnection {nodes {name location {name}}}}}"
        )["repositoriesOrError"]["nodes"]
        launched = self.ask(
            "mutation Launch($given: ExecutionParams!) {launchRun(executionParams: $given) {"
            "__typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message} "
            "... on RunConfigValidationInvalid {errors {message}}}}",
            given={
                "selector": {
                    "repositoryName": found["name"],
                    "repositoryLocationName": found["location"]["name"],
                    "jobName": CONTROLLED_RERUN,
                },
                "runConfigData": config(**fields),
                "executionMetadata": {
                    "tags": [{"key": key, "value": value} for key, value in (tags or {}).items()]
                },
            },
        )["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def state(self, run_id: str) -> str:
        run = self.ask("query State($id: ID!) {runOrError(runId: $id) {... on Run {status}}}",
                       id=run_id)  # fmt: skip
        return str(run["runOrError"]["status"])

    def tags(self, run_id: str) -> dict[str, str]:
        run = self.ask("query Tags($id: ID!) {runOrError(runId: $id) {... on Run {"
                       "tags {key value}}}}", id=run_id)  # fmt: skip
        return {tag["key"]: tag["value"] for tag in run["runOrError"]["tags"]}

    def terminate(self, run_id: str) -> None:
        ended = self.ask(
            "mutation End($id: String!) {terminateRun(runId: $id) {__typename}}", id=run_id
        )
        assert ended["terminateRun"]["__typename"] == "TerminateRunSuccess", ended


@contextmanager
def serving(environment: dict[str, str], folder: Path) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.cli", "dev", "--port", str(port)],
            cwd=folder, env=environment, stdout=stream, stderr=stream, start_new_session=True,
        )  # fmt: skip
    try:
        server = Server(f"http://127.0.0.1:{port}")
        wait_for(lambda: answers(server), 120, log)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(server: Server) -> bool:
    try:
        return bool(server.ask("{version}"))
    except requests.ConnectionError:
        return False


def wait_for(condition: Callable[[], object], seconds: float, log: Path) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited too long: {log.read_text()[-3000:]}"
        time.sleep(0.5)


def test_reruns_wait_for_their_own_gpu_only(
    warehouse_copy: Path, torch_python: str, tmp_path: Path
) -> None:
    own = Warehouse(warehouse_copy)
    ledger, release = tmp_path / "ledger", tmp_path / "release"
    ledger.touch()
    settings = {
        "worker_file": str(HELD_WORKER),
        "python": torch_python,
        "lock_dir": str(tmp_path / "locks"),
        "environment": {
            "HELD_WORKER": str(worker_file(own)),
            "HELD_LEDGER": str(ledger),
            "HELD_RELEASE": str(release),
        },
    }
    (own.root / "reruns" / "launchers.json").write_text(json.dumps({"local": settings}))
    environment = {
        **os.environ,
        "KERNELINDEX_WAREHOUSE": str(own.root),
        "DAGSTER_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("KERNELINDEX_LAUNCHERS", None)
    asked = {
        "selection": {"runs": {"runs": [a_run(own, "rmsnorm_h128_torch_rms_norm")]}},
        "samples": 20,
    }

    def measured() -> list[list[str]]:
        return [json.loads(line) for line in ledger.read_text().splitlines()]

    with serving(environment, tmp_path) as server:
        log = tmp_path / "server.log"
        first = server.launch(**{**asked, "reason": "hold"}, gpu="0")
        wait_for(lambda: measured() == [["start", "0", "hold"]], 120, log)
        queued_at = time.monotonic()
        regretted = server.launch(**{**asked, "reason": "regretted"}, gpu="0")
        second = server.launch(**{**asked, "reason": "second", "deadline_s": 45.0}, gpu="0")
        # What is typed into the launchpad does not decide: the configuration does.
        typed = {GPU_TAG: "local-0"}
        other = server.launch(typed, **{**asked, "reason": "other"}, gpu="1")
        assert server.tags(second)[GPU_TAG] == "local-0"
        assert server.tags(other)[GPU_TAG] == "local-1"

        wait_for(lambda: server.state(other) == "SUCCESS", 180, log)
        assert server.state(first) == "STARTED"
        assert [server.state(run) for run in (regretted, second)] == ["QUEUED", "QUEUED"]
        assert measured()[1:] == [["start", "1", "other"], ["end", "1", "other"]]

        server.terminate(regretted)
        assert server.state(regretted) == "CANCELED"
        # Longer in the queue than it may measure: the deadline counts from its own start.
        time.sleep(max(0.0, queued_at + 46.0 - time.monotonic()))
        release.touch()
        wait_for(lambda: server.state(first) == "SUCCESS", 120, log)
        wait_for(lambda: server.state(second) == "SUCCESS", 120, log)
        assert measured()[3:] == [
            ["end", "0", "hold"], ["start", "0", "second"], ["end", "0", "second"],
        ]  # fmt: skip
    # On the CPU that stands in for both GPUs they are trials: with a result, and unpublished.
    results = [
        (json.loads((folder / "bundle" / "bundle.json").read_bytes())["reason"], item["status"])
        for folder in (own.root / "reruns" / "jobs").iterdir()
        for item in json.loads((folder / "result" / "result.json").read_bytes())["items"]
    ]
    assert sorted(results) == [("hold", "PASSED"), ("other", "PASSED"), ("second", "PASSED")]
    assert [(line.imported, line.trial) for line in jobs(own)] == [(True, True)] * 3
    assert rows(own, "select count(*) from reproductions") == [(0,)]
