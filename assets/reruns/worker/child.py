"""A child process: confine itself, then answer the supervisor's requests, one JSON line each.

Roles are candidate, referee, calibrator and builder. Everything that a candidate could gain by
replacing is taken before its code is loaded. A candidate's process is given the problem and its
own sources, never the reference. Needs torch.
"""

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from . import calibration, integrity, isolation
from .clocks import CpuDevice, CudaDevice, Device
from .documents import DocumentError, Problem, Solution
from .loading import (
    LoadFailed,
    build_extension,
    last_lines,
    load_extension,
    load_python,
    write_sources,
)
from .referee import Referee
from .runner import CallFailed, Runner, flush_output
from .tolerance import ToleranceRule

_dumps = json.dumps
_loads = json.loads
_sendall = socket.socket.sendall
_MAX_DETAIL_CHARACTERS = 20_000


def main(channel: socket.socket, settings: dict[str, Any]) -> None:
    """Serve requests until the channel closes; `settings` come with the fork."""
    folder = Path(settings["folder"])
    os.chdir(folder)
    sys.argv = ["candidate"]
    for name in ("TMPDIR", "HOME"):
        os.environ[name] = str(folder)
    for name in ("TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = str(folder / name.lower())
    report = isolation.confine(
        int(settings["file_bytes"]), settings["sandbox"], settings["keep_network"]
    )
    served = Served(folder, settings, report)
    with channel.makefile("rb") as requests:
        for line in requests:
            request = _loads(line)
            answer = served.answer(request)
            answer["token"] = request["token"]
            flush_output()
            _sendall(channel, _dumps(answer).encode("utf-8") + b"\n")


class Served:
    """The state of one child process and the requests that it understands."""

    def __init__(self, folder: Path, settings: dict[str, Any], report: dict[str, str]) -> None:
        self._folder = folder
        self._settings = settings
        self._report = report
        self._device: Device | None = None
        self._runner: Runner | None = None
        self._referee: Referee | None = None
        self._before: dict[str, tuple[int, int]] = {}
        self._commands: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "open": self._open,
            "calibrate": self._calibrate,
            "build": self._build,
            "facts": self._facts,
            "judge": self._judge,
            "call": self._call,
            "keep": self._keep,
            "look_again": self._look_again,
            "warm": self._warm,
            "place": self._place,
            "repeat": self._repeat,
            "verify": self._verify,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks; failures become answers with `kind` and `detail`."""
        try:
            return {"ok": True, **self._commands[request["do"]](request)}
        except (LoadFailed, CallFailed, DocumentError) as error:
            kind, detail = error.code, error.detail
        except BaseException:  # noqa: BLE001 - whatever it is, the supervisor must hear of it
            kind, detail = "RAISED", last_lines()
        return {"ok": False, "kind": kind, "detail": detail[-_MAX_DETAIL_CHARACTERS:]}

    def _make_device(self) -> Device:
        if self._settings["device"] == "cpu":
            torch.set_num_threads(1)
            self._device = CpuDevice()
        else:
            self._device = CudaDevice(
                float(self._settings["flush_factor"]), int(self._settings["launch_runway_us"])
            )
        return self._device

    def _open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Load a candidate, or the reference when the request carries a tolerance `rule`."""
        runner = self._runner = self._make_runner(request)
        if "rule" in request:
            self._referee = Referee(runner, ToleranceRule(**request["rule"]))
        self._before = integrity.fingerprint()
        if request.get("library"):
            function = load_extension(
                Path(request["library"]), request["module"], request["entry_function"]
            )
        else:
            sources = self._folder / "source"
            write_sources([(path, text) for path, text in request["sources"]], sources)
            function = load_python(sources, request["entry_file"], request["entry_function"])
        runner.set_entry_point(function)
        return {"isolation": self._report, "varied": runner.buffers.varied}

    def _make_runner(self, request: dict[str, Any]) -> Runner:
        """Device, buffers and inputs; what goes wrong here is never the candidate's fault."""
        convention = request["convention"]
        try:
            return Runner(
                Problem.from_document(request["problem"]),
                self._make_device(),
                convention["style"],
                convention["arguments"],
                prefer_returned=convention["decided_by"] != "field",
            )
        except (RuntimeError, AttributeError, OSError, MemoryError) as error:
            raise LoadFailed("WORKER_FAILED", last_lines()) from error

    def _calibrate(self, request: dict[str, Any]) -> dict[str, Any]:
        device = self._device or self._make_device()
        return {
            "values": calibration.measure(device),
            "software": software(),
            "device": device_facts(device),
        }

    def _build(self, request: dict[str, Any]) -> dict[str, Any]:
        fields = {**request["solution"]}
        fields["sources"] = tuple((path, text) for path, text in fields["sources"])
        cuda = self._settings["device"] != "cpu"
        module, library = build_extension(
            Solution(**fields), self._folder / "source", cuda, self._settings.get("capability")
        )
        return {"module": module, "library": library}

    def _facts(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._refereeing().facts(request["seed"])

    def _judge(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._refereeing().judge(
                request["seed"],
                Path(request["folder"]),
                request["snapshot"],
                request["final"],
                request["previous_seeds"],
            )
        except (ValueError, OSError) as error:  # the files are the candidate's
            raise LoadFailed("HARNESS_TAMPERING", str(error)) from error

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._opened().call(request["seed"], request["mode"], poisoned=request["poisoned"])

    def _keep(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._opened().keep(request["seed"], self._folder, request["name"])

    def _look_again(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._opened().look_again(self._folder, request["name"])

    def _warm(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._opened().warm(request["seed"], request["seconds"], request["least"])

    def _place(self, request: dict[str, Any]) -> dict[str, Any]:
        self._opened().place(request["seed"])
        return {}

    def _repeat(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._opened().repeat(request["seed"], request["count"])

    def _verify(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"replaced": integrity.replaced(self._before)}

    def _opened(self) -> Runner:
        if self._runner is None:
            raise LoadFailed("WORKER_FAILED", "Nothing was opened before this request.")
        return self._runner

    def _refereeing(self) -> Referee:
        if self._referee is None:
            raise LoadFailed("WORKER_FAILED", "This process is no referee.")
        return self._referee


def software() -> dict[str, str]:
    """Versions of what the measurement runs on."""
    found = {
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda) if torch.version.cuda else "",
    }
    if torch.cuda.is_available():
        found["cudnn"] = str(torch.backends.cudnn.version())
    from importlib import metadata

    for name in ("triton", "numpy", "safetensors", "flashinfer-python"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {name: version for name, version in found.items() if version}


def device_facts(device: Device) -> dict[str, Any]:
    """What torch says about the device."""
    if device.device.type == "cpu":
        return {"kind": "cpu", "name": "CPU", "l2_bytes": 0}
    properties = torch.cuda.get_device_properties(0)
    return {
        "kind": "cuda",
        "name": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": int(getattr(properties, "L2_cache_size", 0)),
        "uuid": str(getattr(properties, "uuid", "")),
    }
