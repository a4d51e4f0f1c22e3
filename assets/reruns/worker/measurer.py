"""The measuring process's side of measurements from outside: contents, clock and judgement.

It is the referee's process, which never runs a line of a solution. It owns the memory that
inputs are read from and outputs are written to, draws contents that nobody can foresee, keeps the
clock, and judges every timed output against the reference on its own copy of the contents.
What a solution's process says is taken as "I am done" and as nothing else. Needs torch.
"""

import os
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
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
    Conductor,
    NoAnswer,
    SharedPage,
)
from .documents import OutputSpec, size_bytes
from .inputs import InputBuffers, fill_random, same_bits, torch_dtype
from .judging import Judge
from .outputs import poison
from .ring import Ring, layout_of, targets_in
from .runner import Runner
from .shared_memory import Driver, SharingFailed, device_bytes, host_bytes
from .tolerance import ToleranceRule

#: How many outputs of a row, chosen at random when it ends, are copied out while the clock runs.
AT_ONCE = 8
_IDLE_LOOKS = 3
_clock = time.perf_counter_ns


@dataclass
class Seat:
    """One subject's shared memory, as the measurer sees it."""

    ring: Ring
    conductor: Conductor
    calls: int
    singles: int
    row_outputs: list[list[torch.Tensor]] = field(default_factory=list)
    single_outputs: list[list[torch.Tensor]] = field(default_factory=list)
    pointers: list[int] = field(default_factory=list)
    turns: int = 0


class Measurer:
    """Rings, rows and gated calls of one group's subjects."""

    def __init__(self, runner: Runner, rule: ToleranceRule, buffers: InputBuffers) -> None:
        """`runner` runs the reference; `buffers` holds the contents of its tensor files."""
        self._runner = runner
        self._problem = runner.problem
        self._device = runner.device
        self._judge = Judge(runner, rule)
        self._buffers = buffers
        self._layout = layout_of(self._problem)
        self._driver = Driver() if self._on_gpu else None
        self._seats: dict[str, Seat] = {}
        self._private: Ring | None = None
        self._small = torch.zeros(32, device=self._device.device)
        self._generator = torch.Generator(device=self._device.device)
        self._spare: list[list[torch.Tensor]] = []
        self._starts = 0
        if self._on_gpu:
            self._start = torch.zeros(8, dtype=torch.int32, device=self._device.device)
            self._gate_stream, self._start_stream = torch.cuda.Stream(), torch.cuda.Stream()

    @property
    def _on_gpu(self) -> bool:
        return str(self._device.device.type) == "cuda"

    def room(self) -> dict[str, Any]:
        """Bytes of one entry, and bytes of the device's memory that are free."""
        if self._on_gpu:
            torch.cuda.empty_cache()
            free = int(torch.cuda.mem_get_info()[0])
        else:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {
            "input_bytes": self._layout.input_bytes,
            "output_bytes": self._layout.output_bytes,
            "free_bytes": free,
        }

    def seat(
        self,
        name: str,
        entries: int,
        calls: int,
        singles: int,
        pid: int,
        descriptors: Sequence[int],
    ) -> dict[str, Any]:
        """Make a ring for one subject; returns the handles that its process shall open.

        Raises `SharingFailed`.
        """
        sizes = self.sizes(entries)
        pointers: list[int] = []
        handles = None
        if self._driver is not None:
            pointers = [self._driver.allocate(size) for size in [*sizes, _FLAG_BYTES]]
            blocks = [device_bytes(p, size) for p, size in zip(pointers, sizes, strict=False)]
            handles = [self._driver.export(pointer)[0].hex() for pointer in pointers]
            for block in [*blocks, device_bytes(pointers[2], _FLAG_BYTES)]:
                block.zero_()
        else:
            pairs = zip(descriptors[1:], sizes, strict=True)
            blocks = [host_bytes(descriptor, size) for descriptor, size in pairs]
        conductor = Conductor(SharedPage(descriptors[0]), lambda: _is_alive(pid))
        ring = Ring(self._problem, entries, blocks[0], blocks[1])
        seat = Seat(ring, conductor, calls, singles, pointers=pointers)
        seat.row_outputs = [ring.targets(entry) for entry in range(calls)]
        seat.single_outputs = [ring.targets(entry) for entry in range(entries)]
        self._seats[name] = seat
        self._make_room(entries)
        self._fill(entries, secrets.randbits(62))
        self._reveal_all(seat)
        self._synchronize()
        return {"handles": handles, "sizes": sizes}

    def sizes(self, entries: int) -> list[int]:
        """Bytes of a ring's inputs and outputs."""
        return [entries * self._layout.input_bytes, entries * self._layout.output_bytes]

    def leave_seat(self, name: str) -> None:
        """Give one subject's memory back."""
        seat = self._seats.pop(name, None)
        if seat is None:
            return
        pointers = seat.pointers
        del seat
        if self._driver is not None:
            self._synchronize()
            for pointer in pointers:
                self._driver.free(pointer)

    def take_exports(
        self, name: str, handles: Sequence[str], places: Sequence[Sequence[Any]]
    ) -> None:
        """Map the outputs that a subject's graphs write into memory of its own.

        All of it comes from the subject: raises `ValueError` for what does not lie in memory
        that it handed over, `SharingFailed` where it cannot be mapped.
        """
        if self._driver is None:
            raise ValueError("outputs were exported where there is no device memory")
        seat = self._seats[name]
        if len(places) != seat.calls + seat.singles or len(handles) > len(places) * 8:
            raise ValueError("not one place per captured call")
        blocks = []
        for handle in handles:
            address, size = self._driver.open(bytes.fromhex(handle))
            blocks.append(device_bytes(address, size))
        found = [
            [
                _at(blocks, place, spec)
                for place, spec in zip(call, self._problem.outputs, strict=True)
            ]
            for call in places
        ]
        seat.row_outputs, seat.single_outputs = found[: seat.calls], found[seat.calls :]

    def turn(self, name: str, plan: Mapping[str, Any], pids: Sequence[int]) -> dict[str, Any]:
        """One subject's turn: as many steps of each series as `plan` says, then leave.

        `plan` counts steps by series (`SERIES`) and has `timeout_s`; the `null_` ones and `copied`
        are asked of a trusted subject only. Returns times, seeds and what was judged. After a
        failed or missing answer `ended` says which.
        """
        seat = self._seats[name]
        found: dict[str, Any] = {key: [] for key in SERIES}
        found.update(judged=[], ended=None, idle_ns=[])
        began = time.monotonic()
        end = began + float(plan["timeout_s"])
        steps = [key for key in SERIES for _ in range(int(plan.get(key, 0)))]
        secrets.SystemRandom().shuffle(steps)
        try:
            for step in steps:
                left = max(0.0, end - time.monotonic())
                if step in ("rows", "null_rows"):
                    right = self._row(seat, step, found, pids, left)
                elif step in ("gated", "null_gated"):
                    right = self._gates(seat, step, found, left)
                else:
                    right = self._gate(seat, step, found, left)
                if not right:
                    found["ended"] = "failed"
                    return found
                if found["judged"] and not found["judged"][-1]["right"]:
                    break
            seat.conductor.prepare(LEAVE)
            seat.conductor.start()
        except NoAnswer as missing:
            found["ended"] = "gone" if missing.gone else "timeout"
        finally:
            _signal(pids, signal.SIGCONT)
            found["spent_s"] = time.monotonic() - began
        return found

    def _row(
        self, seat: Seat, step: str, found: dict[str, Any], pids: Sequence[int], left: float
    ) -> bool:
        """One row: contents while the process stands still, go, the answer, judge all of it."""
        real = step == "rows"
        calls = seat.calls
        chosen = secrets.SystemRandom().sample(range(calls), min(AT_ONCE, calls))
        spare = self._copies(len(chosen))
        seed = secrets.randbits(62)
        seat.conductor.wait_ready(left)
        _signal(pids, signal.SIGSTOP)
        if real:
            self._fill(calls, seed)
            self._reveal_all(seat)
            for made in seat.row_outputs:
                for output in made:
                    poison(output)
        self._device.flush()
        found["idle_ns"].append(self._idle_ns())
        seat.conductor.prepare(ROW if real else ROW_OF_NOTHING)
        _signal(pids, signal.SIGCONT)
        began = _clock()
        seat.conductor.start()
        done = seat.conductor.wait(left)
        for place, entry in enumerate(chosen):
            for copy, output in zip(spare[place], seat.row_outputs[entry], strict=True):
                copy.copy_(output)
        _signal(pids, signal.SIGSTOP)
        self._synchronize()
        elapsed = _clock() - began
        if done:
            found[step].append({"elapsed_ns": elapsed, "seed": seed if real else None})
        if done and real:
            outputs = list(seat.row_outputs)
            for place, entry in enumerate(chosen):
                outputs[entry] = spare[place]
            found["judged"].append(self._judged(seat, calls, outputs, list(range(calls))))
        _signal(pids, signal.SIGCONT)
        return done

    def _gates(self, seat: Seat, step: str, found: dict[str, Any], left: float) -> bool:
        """Calls behind gates on the device, one after the other.

        The contents of a call are written when the outputs of the one before it were copied out,
        and not earlier: nothing of it can be done together with others, before its turn, or after.
        No host stands between two calls, so all are paid for with one clock.
        """
        if self._driver is None:
            raise SharingFailed("there are no gates without device memory")
        real, calls = step == "gated", seat.singles
        seed = secrets.randbits(62)
        self._fill(calls, seed)
        outputs, copies = seat.single_outputs, self._copies(calls)
        for made in outputs[:calls]:
            for output in made:
                poison(output)
        seat.conductor.wait_ready(left)
        self._synchronize()
        seat.turns += 1
        flags, turn = seat.pointers[2], seat.turns
        seat.conductor.prepare(GATES if real else GATES_OF_NOTHING, turn)
        seat.conductor.start()
        if not seat.conductor.wait_armed(left):
            return False
        stream = self._gate_stream.cuda_stream
        start = self._start.data_ptr()
        self._starts += 1
        with torch.cuda.stream(self._gate_stream):
            self._driver.wait_value(stream, start, self._starts)
            for call in range(calls):
                gate = flags + 8 * call
                seat.ring.input_block(call).copy_(self._own().input_block(call))
                self._driver.write_value(stream, gate, turn)
                self._driver.wait_value(stream, gate + 4, turn)
                for copy, output in zip(copies[call], outputs[call], strict=True):
                    copy.copy_(output)
        began = _clock()
        self._driver.write_value(self._start_stream.cuda_stream, start, self._starts)
        try:
            self._wait_for_gates(began + int(left * 1e9), seat)
        finally:
            # Nothing may be left standing at a gate, here or there.
            for call in range(calls):
                for place in (flags + 8 * call, flags + 8 * call + 4):
                    self._driver.write_value(self._start_stream.cuda_stream, place, turn)
        elapsed = _clock() - began
        done = seat.conductor.wait(left)
        if done:
            found[step].append({"elapsed_ns": elapsed, "seed": seed if real else None})
        if done and real:
            entries = list(range(calls))
            found["judged"].append(self._judged(seat, calls, copies[:calls], entries))
        return done

    def _wait_for_gates(self, end_ns: int, seat: Seat) -> None:
        query = self._gate_stream.query
        looks = 0
        while not query():
            looks += 1
            if looks % 1024 == 0:
                seat.conductor.check_alive()
            if _clock() > end_ns:
                raise NoAnswer(gone=False)

    def _gate(self, seat: Seat, step: str, found: dict[str, Any], left: float) -> bool:
        """One plain call whose contents are revealed, at an entry of our choice, on the clock."""
        real = step == "called"
        entry = secrets.randbelow(seat.singles)
        # A plain call's outputs are copied to where the measurer asked for them.
        outputs = seat.ring.targets(entry)
        copies = self._copies(1)[0]
        seed = secrets.randbits(62)
        self._fill(1, seed)
        for output in outputs:
            poison(output)
        self._device.flush()
        seat.conductor.wait_ready(left)
        seat.conductor.prepare(_GATES[step], entry)
        self._synchronize()
        began = _clock()
        seat.ring.input_block(entry).copy_(self._own().input_block(0))
        self._synchronize()
        seat.conductor.start()
        done = seat.conductor.wait(left)
        for copy, output in zip(copies, outputs, strict=True):
            copy.copy_(output)
        self._synchronize()
        elapsed = _clock() - began
        if done:
            times = {"elapsed_ns": elapsed, "seed": seed if real else None}
            found[step].append({**times, "entry": entry if real else None})
        if done and real:
            found["judged"].append(self._judged(seat, 1, [copies], [entry]))
        return done

    def _judged(
        self,
        seat: Seat,
        calls: int,
        outputs: Sequence[Sequence[torch.Tensor]],
        entries: Sequence[int],
    ) -> dict[str, Any]:
        """Judge outputs for the contents of the first `calls` private entries.

        `entries` say where in the subject's ring each of those contents was.
        """
        own = self._own()
        changed: set[str] = set()
        for place, entry in enumerate(entries):
            if not same_bits(own.input_block(place), seat.ring.input_block(entry)):
                changed |= set(_changed(own, seat.ring, place, entry))
        judged = self._judge.judge([own.arguments(place) for place in range(calls)], outputs)
        return {**judged, "mutated": sorted(changed)}

    def _fill(self, entries: int, seed: int) -> None:
        """Fresh contents in the first private entries."""
        own = self._own()
        self._generator.manual_seed(seed)
        for spec in self._problem.inputs:
            if spec.source == "scalar":
                continue
            column = own.column(spec.name, entries)
            if spec.source == "random":
                fill_random(column, spec, self._generator)
            else:
                column.copy_(self._buffers.fixed(spec.name).reshape(1, -1))

    def _reveal_all(self, seat: Seat) -> None:
        seat.ring.inputs.copy_(self._own().inputs[: seat.ring.inputs.numel()])

    def _make_room(self, entries: int) -> None:
        if self._private is None or self._private.entries < entries:
            self._private = None
            inputs = torch.zeros(
                entries * self._layout.input_bytes, dtype=torch.uint8, device=self._device.device
            )
            # Outputs of the reference are made and dropped call by call.
            outputs = torch.empty(0, dtype=torch.uint8, device=self._device.device)
            self._private = Ring(self._problem, entries, inputs, outputs)

    def _copies(self, count: int) -> list[list[torch.Tensor]]:
        """Memory of our own for the outputs of `count` calls."""
        while len(self._spare) < count:
            block = torch.empty(
                self._layout.output_bytes, dtype=torch.uint8, device=self._device.device
            )
            self._spare.append(targets_in(block, self._problem, self._layout))
        return self._spare

    def _idle_ns(self) -> int:
        """Least time of a tiny kernel: long where somebody else's work is on the device."""
        least = 0
        for _ in range(_IDLE_LOOKS):
            self._synchronize()
            began = _clock()
            self._small.add_(1.0)
            self._synchronize()
            elapsed = _clock() - began
            least = min(least or elapsed, elapsed)
        return least

    def _own(self) -> Ring:
        if self._private is None:
            raise SharingFailed("no ring was made before this request")
        return self._private

    def _synchronize(self) -> None:
        self._device.synchronize()


_GATES = {"called": CALL, "null_called": NOTHING, "copied": COPY}
_FLAG_BYTES = 1 << 21
#: Rows and gated calls, of graphs and of plain calls, and of a trusted process with nothing to do.
SERIES = ("rows", "null_rows", "gated", "null_gated", *_GATES)


def _at(blocks: Sequence[torch.Tensor], place: Sequence[Any], spec: OutputSpec) -> torch.Tensor:
    """A tensor that a subject described, if it lies inside the block that it names."""
    number, offset, strides = place
    numbers = [number, offset, *strides]
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in numbers):
        raise ValueError("a place holds something else than whole numbers")
    if number >= len(blocks) or len(strides) != len(spec.shape):
        raise ValueError("a place names no block, or not one stride per axis")
    dtype = torch_dtype(spec.dtype)
    item = size_bytes((1,), spec.dtype)
    reach = sum((n - 1) * s for n, s in zip(spec.shape, strides, strict=True) if n) + 1
    size = blocks[number].numel()
    if offset % item or offset + reach * item > size:
        raise ValueError("a place lies outside the memory that was handed over")
    wide = blocks[number][: size - size % item].view(dtype)
    return torch.as_strided(wide, spec.shape, strides, offset // item)


def _changed(own: Ring, theirs: Ring, place: int, entry: int) -> list[str]:
    pairs = zip(own.problem.inputs, own.arguments(place), theirs.arguments(entry), strict=True)
    return [
        spec.name
        for spec, mine, other in pairs
        if spec.source != "scalar" and not same_bits(mine, other)
    ]


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")
