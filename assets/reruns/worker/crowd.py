"""Work that keeps every multiprocessor of a GPU busy for a while, on streams of its own.

Behind it, whatever was launched and does not hold up the caller's stream is certainly not done
when that stream goes on. Needs torch.
"""

import itertools
import time
from typing import Any

import torch

_BUFFER_BYTES = 128 * 1024 * 1024
_HIGHEST_PRIORITY = -100  # is mapped to the nearest that the device has
_TRIALS = 20


class Crowd:
    """Element-wise kernels of far more blocks than fit on the device at once.

    They take turns on two streams of the highest priority: while one kernel's last blocks run,
    the next one's are already waiting, ahead of everybody else's.
    """

    def __init__(self, device: torch.device) -> None:
        """Allocate, and learn how long one kernel takes."""
        self._work = torch.Tensor.sin_
        self._set_stream = torch.cuda.set_stream
        self._buffer = torch.zeros(_BUFFER_BYTES // 4, device=device)
        self._streams = [torch.cuda.Stream(device, priority=_HIGHEST_PRIORITY) for _ in range(2)]
        self._kernel_us = self._measured(device)

    def start(self, least_us: int, back_to: Any) -> None:
        """Launch for `least_us`; afterwards `back_to` is the current stream."""
        launches = 1 + int(least_us / self._kernel_us)
        for stream in itertools.islice(itertools.cycle(self._streams), launches):
            self._set_stream(stream)
            self._work(self._buffer)
        self._set_stream(back_to)

    def _measured(self, device: torch.device) -> float:
        stream = torch.cuda.current_stream(device)
        self._kernel_us = 1.0
        self.start(1, stream)  # loads the kernel
        torch.cuda.synchronize(device)
        began = time.perf_counter()
        self.start(_TRIALS, stream)
        torch.cuda.synchronize(device)
        return (time.perf_counter() - began) * 1e6 / (1 + _TRIALS)
