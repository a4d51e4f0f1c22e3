"""Gates on the device: a call's contents are written when the call before it was copied out.

The subject's stream stands at each gate, the measurer's at the word that says a call is done. No
host stands between two calls, so a whole row of them is paid for with one clock. Needs torch.
"""

import time
from collections.abc import Callable, Sequence

import torch

from .ring import Layout, Ring, targets_in
from .shared_memory import Driver

#: Flags: eight bytes a gate, "go" and "done". In an allocation of their own.
FLAG_BYTES = 1 << 21
#: Up to this size contents and outputs go through host memory: the engine that copies to and from
#: the host leaves the multiprocessors to the subject, where a copy on the device takes them away
#: from it twice a call. On an H200 a gate takes 26 us that way, and 286 us the other.
HOST_BYTES = 4 << 20
_SETTLE_S = 0.002
_clock = time.perf_counter_ns


class DeviceGates:
    """One group's gates: two streams, a start flag, and memory that contents go through."""

    def __init__(self, driver: Driver, own: Ring, layout: Layout, calls: int) -> None:
        self._driver = driver
        self._own = own
        self._stream, self._starter = torch.cuda.Stream(), torch.cuda.Stream()
        self._start = torch.zeros(8, dtype=torch.int32, device=own.inputs.device)
        self._starts = 0
        self._through_host = layout.input_bytes + layout.output_bytes <= HOST_BYTES
        self._staged_in = self._staged_out = None
        if self._through_host:
            pinned = {"dtype": torch.uint8, "pin_memory": True}
            self._staged_in = torch.empty(calls * layout.input_bytes, **pinned)
            self._staged_out = torch.empty(calls * layout.output_bytes, **pinned)
        self._layout = layout

    def stage(self, calls: int) -> None:
        """Take the contents of the first private entries to where they are copied from."""
        if self._staged_in is not None:
            size = calls * self._layout.input_bytes
            self._staged_in[:size].copy_(self._own.inputs[:size])

    def queue(
        self,
        ring: Ring,
        outputs: Sequence[Sequence[torch.Tensor]],
        copies: Sequence[Sequence[torch.Tensor]],
        flags: int,
        turn: int,
    ) -> None:
        """Queue one row of `len(copies)` calls; it stands still until `go`."""
        driver, stream = self._driver, self._stream.cuda_stream
        self._starts += 1
        with torch.cuda.stream(self._stream):
            driver.wait_value(stream, self._start.data_ptr(), self._starts)
            for call in range(len(copies)):
                gate = flags + 8 * call
                ring.input_block(call).copy_(self._source(call), non_blocking=True)
                driver.write_value(stream, gate, turn)
                driver.wait_value(stream, gate + 4, turn)
                targets = self._targets(ring, call) or copies[call]
                for copy, output in zip(targets, outputs[call], strict=True):
                    copy.copy_(output, non_blocking=True)

    def go(self, end_ns: int, look: Callable[[], None]) -> int | None:
        """Start, and wait for the last copy; the time in ns, None when it did not come in time.

        `look` is called now and then, and may raise.
        """
        time.sleep(_SETTLE_S)
        query, looks = self._stream.query, 0
        began = _clock()
        self._driver.write_value(self._starter.cuda_stream, self._start.data_ptr(), self._starts)
        while not query():
            looks += 1
            if looks % 4096 == 0:
                look()
                if _clock() > end_ns:
                    return None
        return _clock() - began

    def release(self, calls: int, flags: int, turn: int) -> None:
        """Open every gate: nothing may be left standing at one, here or there."""
        for place in range(flags, flags + 8 * calls, 4):
            self._driver.write_value(self._starter.cuda_stream, place, turn)

    def fetch(self, ring: Ring, copies: Sequence[Sequence[torch.Tensor]]) -> None:
        """Bring outputs that went through host memory back to the device."""
        for call, made in enumerate(copies):
            for copy, staged in zip(made, self._targets(ring, call) or [], strict=False):
                copy.copy_(staged)

    def _source(self, call: int) -> torch.Tensor:
        if self._staged_in is None:
            return self._own.input_block(call)
        size = self._layout.input_bytes
        return self._staged_in[call * size : (call + 1) * size]

    def _targets(self, ring: Ring, call: int) -> list[torch.Tensor] | None:
        if self._staged_out is None:
            return None
        size = self._layout.output_bytes
        block = self._staged_out[call * size : (call + 1) * size]
        return targets_in(block, ring.problem, self._layout)
