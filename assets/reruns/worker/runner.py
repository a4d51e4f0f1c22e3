"""Call one entry point again and again, each time with fresh contents, and time the calls.

The same class runs candidates and the reference, so that both are measured the same way. It
holds no reference results. Needs torch.
"""

import contextlib
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import outputs
from .clocks import Device
from .documents import Problem
from .inputs import InputBuffers
from .loading import last_lines

#: How long unsynchronized work may still come in before the final outputs are looked at, and how
#: long before outputs that were wrong are looked at again (a thread may be slow, or made to be).
GRACE_S = 0.05
LONG_GRACE_S = 1.0
#: How long a probe keeps the device busy: long enough that every launch of the call is queued
#: meanwhile, however slow the host is. Bounds in microseconds, and how many times the last call's.
PROBE_US = (10_000, 200_000)
PROBE_FACTOR = 3

_sleep = time.sleep
_perf_counter = time.perf_counter


class CallFailed(Exception):  # noqa: N818
    """The entry point failed or returned what it must not; `code` is a reason code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Runner:
    """One callable with its buffers on one device."""

    def __init__(
        self,
        problem: Problem,
        device: Device,
        style: str = "returns",
        arguments: str = "positional",
        prefer_returned: bool = False,
    ) -> None:
        """Prepare buffers; the entry point is set later, after everything here is captured."""
        self.problem = problem
        self.device = device
        self.buffers = InputBuffers(problem, device.device)
        self._destination = style == "destination"
        self._keyword = arguments == "keyword"
        self._prefer_returned = prefer_returned
        self._targets: list[Any] = []
        self._entry_point: Callable[..., Any] | None = None
        self._held: list[Any] = []
        self._snapshot: list[Any] = []
        self._generator = random.Random(0)
        self._host_us = 0
        self._allocate_targets()

    def set_entry_point(self, function: Callable[..., Any]) -> None:
        """The function to call from now on."""
        self._entry_point = function

    def place(self, seed: int) -> None:
        """Move every buffer to new memory, so that one lucky placement does not decide."""
        self._held, self._snapshot, self._targets = [], [], []
        self.buffers.values = {}
        self._generator.seed(seed)
        self.device.new_placement(self._generator)
        self.buffers.allocate()
        self._allocate_targets()

    def call(self, seed: int, mode: str, poisoned: bool, late: bool = True) -> dict[str, Any]:
        """One call on this seed's contents.

        `mode` is device (launches hidden behind a runway), wall (idle device before the call) or
        one of two probes, whose times mean nothing. They outlast the launching, however slow the
        host is: probe_start has a long runway, so that only work that waits for its turn in the
        stream finds the last block; in probe_end all multiprocessors are busy and the outputs
        are copied without them, so that only what the stream waits for is in the copy.
        Without `late` the contents are those of before the last block was written.
        Returns times in ns; raises `CallFailed`.
        """
        self._prepare(seed, poisoned)
        self._lead_in(seed, mode, late)
        positional, named = self._arguments()
        began = _perf_counter()
        self.device.begin()
        returned = self._invoke(positional, named)
        self.device.end()
        self._host_us = int((_perf_counter() - began) * 1e6)
        stream_left = self.device.restore_stream()
        self._take(returned)
        copied_out = mode == "probe_end"
        copy = outputs.snapshot_to_host if copied_out else outputs.snapshot
        self._snapshot = copy(self._held)
        timing = self.device.finish()
        if copied_out:
            self._snapshot = outputs.on_device(self._snapshot, self.device.device)
        return {
            "device_ns": timing.device_ns,
            "wall_ns": timing.wall_ns,
            "late_ns": timing.late_ns,
            "stream_left": stream_left,
        }

    def keep(self, seed: int, folder: Path, name: str) -> dict[str, Any]:
        """Write out the last call's outputs: as they were in stream order, and as they are now."""
        _sleep(GRACE_S)
        self.device.synchronize()
        snapshot = outputs.write(self._snapshot, folder, f"{name}-snapshot")
        final = snapshot
        if not outputs.same(self._snapshot, self._held):
            final = outputs.write(self._held, folder, f"{name}-final")
        result = {
            "snapshot": snapshot,
            "final": final,
            "aliased": outputs.aliased(self._held, self.buffers.values),
            "mutated": self.buffers.changed(seed),
        }
        self._snapshot = []
        return result

    def look_again(self, folder: Path, name: str) -> dict[str, Any]:
        """Write out the last call's outputs as they are after the long grace time."""
        _sleep(LONG_GRACE_S)
        self.device.synchronize()
        return {"final": outputs.write(self._held, folder, f"{name}-later")}

    def warm(self, seed: int, seconds: float, least: int) -> dict[str, Any]:
        """Call for some time and at least `least` times; returns calls and device time."""
        end = _perf_counter() + seconds
        calls = total = 0
        while calls < least or (_perf_counter() < end and calls < 10_000):
            total += int(self.call(seed + calls, "device", poisoned=False)["device_ns"])
            calls += 1
        return {"calls": calls, "device_ns": total}

    def repeat(self, seed: int, count: int) -> dict[str, Any]:
        """`count` calls in a row on one seed's contents, then one synchronization."""
        self._prepare(seed, poisoned=True)
        self.buffers.fill_late(seed)
        self.device.synchronize()
        returned = None
        for _ in range(count):
            positional, named = self._arguments()
            returned = self._invoke(positional, named)
        self.device.restore_stream()
        self.device.synchronize()
        self._take(returned)
        self._snapshot = outputs.snapshot(self._held)
        return {"calls": count}

    def _prepare(self, seed: int, poisoned: bool) -> None:
        self._held, self._snapshot = [], []
        self.buffers.fill(seed)
        for target in self._targets:
            outputs.poison(target)
        if poisoned:
            outputs.poison_free_memory(self.problem.outputs, self.device.device)
        self.device.flush()

    def _lead_in(self, seed: int, mode: str, late: bool) -> None:
        """Write the last block, and have the device idle or busy as the mode asks for."""
        idle = mode in ("wall", "probe_end")
        if idle:
            self.device.synchronize()
        else:
            self.device.runway(self._probe_us() if mode == "probe_start" else 0)
        if late:
            self.buffers.fill_late(seed)
        if idle:
            self.device.synchronize()
        if mode == "probe_end":
            outputs.reserve_host_memory(self.problem.outputs, self.device.device)
            self.device.crowd(self._probe_us())

    def _probe_us(self) -> int:
        shortest, longest = PROBE_US
        return min(longest, max(shortest, PROBE_FACTOR * self._host_us))

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        values = [*self.buffers.arguments(), *self._targets]
        if not self._keyword:
            return values, {}
        names = [spec.name for spec in self.problem.inputs]
        if self._destination:
            names += [spec.name for spec in self.problem.outputs]
        return [], dict(zip(names, values, strict=True))

    def _invoke(self, positional: list[Any], named: dict[str, Any]) -> Any:
        if self._entry_point is None:
            raise CallFailed("ENTRY_POINT_MISSING", "Nothing was loaded.")
        try:
            return self._entry_point(*positional, **named)
        except ModuleNotFoundError as error:
            raise CallFailed("MISSING_DEPENDENCY", last_lines()) from error
        except BaseException as error:
            compiling = type(error).__module__.startswith("triton.compiler")
            raise CallFailed("BUILD_FAILED" if compiling else "RAISED", last_lines()) from error

    def _take(self, returned: Any) -> None:
        values = self._targets
        if not self._destination or (self._prefer_returned and returned is not None):
            values = returned
        try:
            listed = outputs.as_list(values, self.problem.outputs)
            self._held = outputs.check(listed, self.problem.outputs, self.device.device)
        except outputs.OutputProblem as problem:
            raise CallFailed(problem.code, problem.detail) from problem

    def _allocate_targets(self) -> None:
        if self._destination:
            self._targets = outputs.destination_buffers(self.problem.outputs, self.device.device)


def flush_output() -> None:
    """Push what the candidate printed into its log."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
