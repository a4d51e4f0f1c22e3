"""The solution's process during measurements from outside: calls on entries of the shared ring.

Maps the ring, captures graphs where that is possible, and does what the control page says. It is
on the solution's side of the line: nothing here is trusted by whoever measures. Needs torch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .control import (
    CALL,
    COPY,
    GATES,
    GATES_OF_NOTHING,
    LEAVE,
    NOTHING,
    ROW,
    ROW_OF_NOTHING,
    Follower,
    SharedPage,
)
from .loading import last_lines
from .outside import COPIED, DESTINATION, EXPORTED, GRAPH
from .ring import Ring
from .runner import CallFailed, Runner
from .shared_memory import Driver, SharingFailed, device_bytes, host_bytes

_WARM_CALLS = 3
_data_ptr = torch.Tensor.data_ptr
_stride = torch.Tensor.stride
_copy = torch.Tensor.copy_
_add = torch.Tensor.add_


class NotCaptured(Exception):  # noqa: N818
    """The calls cannot be made part of a graph; this process may be unusable from now on."""


class Player:
    """One subject's calls on a ring that the measurer owns."""

    def __init__(self, runner: Runner, page: SharedPage) -> None:
        self._runner = runner
        self._follower = Follower(page)
        self._ring: Ring | None = None
        self._row: Any = None
        self._singles: list[Any] = []
        self._nothing: Any = None
        self._small = torch.ones(32, device=runner.device.device)
        self._flags = 0
        self._gates = 0
        self._pool: Any = None
        self._stream: Any = None
        self._held: list[list[torch.Tensor]] = []
        self._driver: Driver | None = None

    def attach(
        self,
        entries: int,
        sizes: Sequence[int],
        handles: Sequence[str] | None,
        descriptors: Sequence[int],
    ) -> None:
        """Map the ring: device memory by handles, or host memory by file descriptors."""
        if handles is not None:
            self._driver = Driver()
            places = [self._driver.open(bytes.fromhex(handle))[0] for handle in handles]
            self._flags = places[2]
            blocks = [device_bytes(p, size) for p, size in zip(places, sizes, strict=False)]
        else:
            blocks = [
                host_bytes(descriptor, size)
                for descriptor, size in zip(descriptors, sizes, strict=True)
            ]
        self._ring = Ring(self._runner.problem, entries, blocks[0], blocks[1])

    def prepare(self, kind: str, calls: int, singles: int) -> dict[str, Any]:
        """Get ready for rows of `calls` and gated calls on the first `singles` entries.

        Says how outputs come out: `outputs`, and for exported ones `handles` and, for each call,
        where each output lies. Raises `CallFailed` or `NotCaptured`.
        """
        ring = self._attached()
        self._gates = singles
        for _ in range(_WARM_CALLS):
            made = self._runner.apply(ring.arguments(0), ring.targets(0))
            self._runner.device.restore_stream()
            self._runner.device.synchronize()
        placed = self._in_place(made, 0)
        if kind != GRAPH:
            return {"outputs": DESTINATION if placed else COPIED}
        if placed:
            self._capture_all(calls, singles, copied=False)
            return {"outputs": DESTINATION}
        held = self._capture_all(calls, singles, copied=False)
        try:
            return {"outputs": EXPORTED, **self._export(held)}
        except SharingFailed:
            # Memory that cannot be handed over (pools of the driver's, expandable segments).
            self._capture_all(calls, singles, copied=True)
            return {"outputs": COPIED}

    def prepare_nothing(self) -> None:
        """Capture a graph of one tiny kernel; raises `NotCaptured`."""
        self._nothing = self._captured(lambda _: _add(self._small, 1.0), [0])

    def play(self) -> None:
        """Follow commands until the one to leave; raises `CallFailed` when a call does."""
        follower, device, ring = self._follower, self._runner.device, self._attached()
        while True:
            command, entry = follower.next()
            if command == LEAVE:
                follower.answer()
                return
            try:
                if command == ROW:
                    self._row.replay()
                elif command == ROW_OF_NOTHING:
                    self._nothing.replay()
                elif command == GATES:
                    self._pass_gates(self._singles, entry)
                elif command == GATES_OF_NOTHING:
                    self._pass_gates([self._nothing] * self._gates, entry)
                elif command == CALL:
                    self._call(ring, entry)
                elif command == NOTHING:
                    _add(self._small, 1.0)
                elif command == COPY:
                    self._copy_out(ring.targets(ring.entries - 1), ring.targets(entry))
                device.synchronize()
            except BaseException:
                follower.fail()
                raise
            follower.answer()

    def _pass_gates(self, graphs: Sequence[Any], turn: int) -> None:
        """Queue each call behind its gate, and behind each call the word that it is done."""
        driver = self._driver
        if driver is None:
            raise SharingFailed("there is no device memory here")
        stream = self._stream.cuda_stream
        with torch.cuda.stream(self._stream):
            for number, graph in enumerate(graphs):
                gate = self._flags + 8 * number
                driver.wait_value(stream, gate, turn)
                graph.replay()
                driver.write_value(stream, gate + 4, turn)
        self._runner.device.restore_stream()
        self._follower.armed()

    def _call(self, ring: Ring, entry: int) -> None:
        targets = ring.targets(entry)
        made = self._runner.apply(ring.arguments(entry), targets)
        self._copy_out(made, targets)
        self._runner.device.restore_stream()

    def _copy_out(self, made: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> None:
        for output, target in zip(made, targets, strict=True):
            if _data_ptr(output) != _data_ptr(target):
                _copy(target, output)

    def _in_place(self, made: Sequence[torch.Tensor], entry: int) -> bool:
        targets = self._attached().targets(entry)
        return all(
            _data_ptr(output) == _data_ptr(target) and output.is_contiguous()
            for output, target in zip(made, targets, strict=True)
        )

    def _capture_all(self, calls: int, singles: int, copied: bool) -> list[list[torch.Tensor]]:
        """Capture the row and the single calls; the outputs of all calls, the row's first."""
        self._row, self._singles = None, []
        held: list[list[torch.Tensor]] = []

        def call(entry: int) -> None:
            ring = self._attached()
            made = self._runner.apply(ring.arguments(entry), ring.targets(entry))
            if copied:
                self._copy_out(made, ring.targets(entry))
            else:
                held.append(made)

        self._row = self._captured(call, range(calls))
        self._singles = [self._captured(call, [entry]) for entry in range(singles)]
        self._held = held  # outputs stay where they are for as long as somebody holds them
        return held

    def _captured(self, function: Callable[[int], Any], entries: Sequence[int]) -> Any:
        # Not torch.cuda.graph: it collects garbage and empties caches for every single graph.
        graph = torch.cuda.CUDAGraph()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
            self._stream = torch.cuda.Stream()
        device = self._runner.device
        device.synchronize()
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    for entry in entries:
                        function(entry)
                finally:
                    graph.capture_end()
            device.restore_stream()
            graph.replay()
            device.synchronize()
        except CallFailed as error:
            raise NotCaptured(error.detail) from error
        except RuntimeError as error:
            raise NotCaptured(last_lines()) from error
        return graph

    def _export(self, held: Sequence[Sequence[torch.Tensor]]) -> dict[str, Any]:
        driver = self._driver
        if driver is None:
            raise SharingFailed("there is no device memory here")
        handles: dict[bytes, int] = {}
        places = []
        for made in held:
            calls = []
            for output in made:
                handle, offset = driver.export(_data_ptr(output))
                number = handles.setdefault(handle, len(handles))
                calls.append([number, offset, list(_stride(output))])
            places.append(calls)
        return {"handles": [handle.hex() for handle in handles], "places": places}

    def _attached(self) -> Ring:
        if self._ring is None:
            raise CallFailed("WORKER_FAILED", "No ring was attached before this request.")
        return self._ring
