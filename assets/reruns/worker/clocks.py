# ruff: noqa: D102 - the methods of both devices are described once, in `Device`
"""Timers, synchronization and cache flushes of one device, captured before candidate code loads.

`CudaDevice` times with a pair of device events around the call; `CpuDevice` with the process's
monotonic clock, for tests only. Both hold every function they use as an attribute of their own:
what a candidate does to torch's or time's names later changes nothing here. Needs torch.
"""

import time
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from .crowd import Crowd

_CPU_FLUSH_BYTES = 1 << 20


@dataclass(frozen=True)
class Timing:
    """One call's times in ns.

    `device_ns` lies between the events, `wall_ns` between the host clock readings around call
    and device synchronization, `late_ns` is what was still running after the end event.
    """

    device_ns: int
    wall_ns: int
    late_ns: int


class Device(Protocol):
    """What the harness needs of a device."""

    device: torch.device

    def flush(self) -> None:
        """Overwrite a buffer larger than the last-level cache."""

    def runway(self, longer_us: int = 0) -> None:
        """Keep the device busy for a moment, so that launch overhead is hidden behind it.

        The moment is the protocol's, or `longer_us` where that is longer.
        """

    def crowd(self, least_us: int) -> None:
        """Keep everything but the caller's stream busy for a time, ahead of all other work."""

    def begin(self) -> None:
        """Start the clock."""

    def end(self) -> None:
        """Stop the device's clock."""

    def finish(self) -> Timing:
        """Wait for the end event, then for the whole device, and read the clocks."""

    def synchronize(self) -> None:
        """Wait for everything on the device."""

    def restore_stream(self) -> bool:
        """Make the harness's stream current again; True when another one was."""

    def new_placement(self, generator: Any) -> None:
        """Give cached memory back and shift what is allocated next."""


class CpuDevice:
    """The CPU as device. Runs on it are labelled and can never become verified."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self._clock = time.perf_counter_ns
        self._buffer = torch.empty(_CPU_FLUSH_BYTES, dtype=torch.uint8)
        self._zero = torch.Tensor.zero_
        self._began = self._ended = 0

    def flush(self) -> None:
        self._zero(self._buffer)

    def runway(self, longer_us: int = 0) -> None:
        return None

    def crowd(self, least_us: int) -> None:
        return None

    def begin(self) -> None:
        self._began = self._clock()

    def end(self) -> None:
        self._ended = self._clock()

    def finish(self) -> Timing:
        elapsed = self._ended - self._began
        return Timing(elapsed, elapsed, 0)

    def synchronize(self) -> None:
        return None

    def restore_stream(self) -> bool:
        return False

    def new_placement(self, generator: Any) -> None:
        return None


class CudaDevice:
    """The one visible GPU."""

    def __init__(self, flush_factor: float, runway_us: int) -> None:
        """Create the context, the events and the flush buffer; torch's errors pass through."""
        torch.cuda.set_device(0)
        self.device = torch.device("cuda", 0)
        properties = torch.cuda.get_device_properties(0)
        l2_bytes = int(getattr(properties, "L2_cache_size", 0)) or 64 * 1024 * 1024
        self._buffer: Any = torch.empty(
            int(l2_bytes * flush_factor), dtype=torch.uint8, device=self.device
        )
        self._zero = torch.Tensor.zero_
        self._clock = time.perf_counter_ns
        self._device_synchronize = _synchronize_function()
        self._stream = torch.cuda.current_stream(self.device)
        self._current_stream = torch.cuda.current_stream
        self._set_stream = torch.cuda.set_stream
        self._empty_cache = torch.cuda.empty_cache
        self._sleep = getattr(torch._C, "_cuda_sleep", None) or getattr(torch.cuda, "_sleep", None)
        # clock_rate is in kHz where torch reports it; 1.7 GHz is near enough for a spin.
        kilohertz = int(getattr(properties, "clock_rate", 0) or 1_700_000)
        self._cycles_per_us = kilohertz / 1000
        self._runway_us = runway_us
        self._crowd = Crowd(self.device)
        self._start, self._stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        functions = _event_functions()
        self._record, self._elapsed, self._wait_event = functions
        self._padding: Any = None
        self._empty = torch.empty
        self._began = 0
        # The first record creates an event; create both now.
        self._record(self._start, self._stream)
        self._record(self._stop, self._stream)
        self._device_synchronize()
        self._elapsed(self._start, self._stop)

    def flush(self) -> None:
        self._zero(self._buffer)

    def runway(self, longer_us: int = 0) -> None:
        cycles = int(max(self._runway_us, longer_us) * self._cycles_per_us)
        if self._sleep is not None and cycles:
            self._sleep(cycles)

    def crowd(self, least_us: int) -> None:
        self._crowd.start(least_us, back_to=self._stream)

    def begin(self) -> None:
        self._began = self._clock()
        self._record(self._start, self._stream)

    def end(self) -> None:
        self._record(self._stop, self._stream)

    def finish(self) -> Timing:
        self._wait_event(self._stop)
        event_done = self._clock()
        self._device_synchronize()
        device_done = self._clock()
        device_ns = round(self._elapsed(self._start, self._stop) * 1e6)
        return Timing(device_ns, device_done - self._began, device_done - event_done)

    def synchronize(self) -> None:
        self._device_synchronize()

    def restore_stream(self) -> bool:
        if self._current_stream(self.device) == self._stream:
            return False
        self._set_stream(self._stream)
        return True

    def new_placement(self, generator: Any) -> None:
        self._padding = None
        self._empty_cache()
        self._padding = self._empty(
            generator.randrange(1, 64) * 1024 * 1024, dtype=torch.uint8, device=self.device
        )


def _event_functions() -> tuple[Any, Any, Any]:
    """record, elapsed_time and synchronize of events: the C functions where torch shows them."""
    base = getattr(torch._C, "_CudaEventBase", None)
    holder: Any = base if hasattr(base, "record") else torch.cuda.Event
    return holder.record, holder.elapsed_time, holder.synchronize


def _synchronize_function() -> Any:
    """The C function behind torch.cuda.synchronize, else that function itself."""
    return getattr(torch._C, "_cuda_synchronize", None) or torch.cuda.synchronize
