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
from dataclasses import dataclass, field
from typing import Any

import torch

from . import isolation
from .contents import Contents
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
from .device_gates import FLAG_BYTES, DeviceGates
from .exports import mapped_outputs
from .inputs import same_bits
from .judging import CapturedJudge, Judge
from .outputs import pieces_of, poison
from .ring import Ring, layout_of, targets_in
from .runner import Runner
from .shared_memory import Driver, SharingFailed, device_bytes, host_bytes
from .tolerance import ToleranceRule

_IDLE_LOOKS = 3
_clock = time.perf_counter_ns


@dataclass
class Seat:
    """One subject's shared memory, as the measurer sees it."""

    ring: Ring
    conductor: Conductor
    calls: int
    singles: int
    row_outputs: list[list[torch.Tensor]]
    single_outputs: list[list[torch.Tensor]]
    pointers: list[int] = field(default_factory=list)
    turns: int = 0
    row_judge: CapturedJudge | None = None


class Measurer:
    """Rings, rows and gated calls of one group's subjects."""

    def __init__(self, runner: Runner, rule: ToleranceRule) -> None:
        """`runner` runs the reference and holds the contents of tensor files."""
        self._runner = runner
        self._problem = runner.problem
        self._device = runner.device
        self._judge = Judge(runner, rule)
        self._layout = layout_of(self._problem)
        self._driver = Driver() if self._on_gpu else None
        self._seats: dict[str, Seat] = {}
        self._contents: Contents | None = None
        self._gates: DeviceGates | None = None
        self._gate_judge: CapturedJudge | None = None
        self._captures = False
        self._small = torch.zeros(32, device=self._device.device)
        self._spare: list[list[torch.Tensor]] = []

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

    def make_room(self, entries: int, singles: int) -> None:
        """Allocate what all subjects share: contents, gates, copies of outputs."""
        self._contents = Contents(self._runner, entries)
        self._copies(singles)
        if self._driver is not None:
            self._gates = DeviceGates(self._driver, self._contents.ring, self._layout, singles)

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
        sizes = [entries * self._layout.input_bytes, entries * self._layout.output_bytes]
        pointers: list[int] = []
        handles = None
        if self._driver is not None:
            pointers = [self._driver.allocate(size) for size in [*sizes, FLAG_BYTES]]
            handles = [self._driver.export(pointer)[0].hex() for pointer in pointers]
            blocks = [device_bytes(p, size) for p, size in zip(pointers, sizes, strict=False)]
            for block in [*blocks, device_bytes(pointers[2], FLAG_BYTES)]:
                block.zero_()
        else:
            pairs = zip(descriptors[1:], sizes, strict=True)
            blocks = [host_bytes(descriptor, size) for descriptor, size in pairs]
        conductor = Conductor(SharedPage(descriptors[0]), lambda: isolation.is_alive(pid))
        ring = Ring(self._problem, entries, blocks[0], blocks[1])
        targets = [ring.targets(entry) for entry in range(entries)]
        self._seats[name] = Seat(
            ring, conductor, calls, singles, targets[:calls], targets, pointers
        )
        own = self._own()
        own.fill(entries, secrets.randbits(62))
        own.reveal_all(ring)
        self._synchronize()
        return {"handles": handles, "sizes": sizes}

    def leave_seat(self, name: str) -> None:
        """Give one subject's memory back."""
        seat = self._seats.pop(name, None)
        if seat is None or self._driver is None:
            return
        pointers = seat.pointers
        del seat
        self._synchronize()
        for pointer in pointers:
            self._driver.free(pointer)

    def take_exports(self, name: str, handles: Sequence[Any], places: Sequence[Any]) -> None:
        """Map the outputs that a subject's graphs write into memory of its own.

        Raises `ValueError` for what does not lie in memory that the subject handed over.
        """
        if self._driver is None:
            raise ValueError("outputs were exported where there is no device memory")
        seat = self._seats[name]
        calls = seat.calls + seat.singles
        specs = self._problem.outputs
        found = mapped_outputs(self._driver, specs, handles, places, calls)
        seat.row_outputs, seat.single_outputs = found[: seat.calls], found[seat.calls :]

    def capture_judging(self, name: str) -> None:
        """Judge this subject's rows with a graph from now on.

        Only for a reference that could be captured in a process of its own.
        """
        seat, own = self._seats[name], self._own().ring
        arguments = [own.arguments(place) for place in range(max(seat.calls, seat.singles))]
        if self._gate_judge is None:
            copies = self._copies(seat.singles)[: seat.singles]
            self._gate_judge = self._judge.capture(arguments[: seat.singles], copies)
        seat.row_judge = self._judge.capture(arguments[: seat.calls], seat.row_outputs)

    def turn(self, name: str, plan: Mapping[str, Any], pids: Sequence[int]) -> dict[str, Any]:
        """One subject's turn: as many steps of each series as `plan` says, then leave.

        `plan` counts steps by series (`SERIES`) and has `timeout_s`; the `null_` ones and `copied`
        are asked of a trusted subject only. Returns times, seeds and what was judged. After a
        failed or missing answer `ended` says which.
        """
        seat = self._seats[name]
        found: dict[str, Any] = {key: [] for key in SERIES}
        found.update(judged=[], ended=None, idle_ns=[], reveal_ns=[])
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
                    right = self._pass_gates(seat, step, found, left)
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
            isolation.signal_all(pids, signal.SIGCONT)
            found["spent_s"] = time.monotonic() - began
        return found

    def _row(
        self, seat: Seat, step: str, found: dict[str, Any], pids: Sequence[int], left: float
    ) -> bool:
        """One row: contents while the process stands still, go, the answer, judge all of it."""
        real, calls = step == "rows", seat.calls
        pieces = pieces_of(seat.row_outputs)
        copies = [torch.empty_like(piece) for piece in pieces]
        seed = secrets.randbits(62)
        seat.conductor.wait_ready(left)
        isolation.signal_all(pids, signal.SIGSTOP)
        if real:
            self._own().fill(calls, seed)
            for output in (output for made in seat.row_outputs for output in made):
                poison(output)
        self._device.flush()
        found["idle_ns"].append(self._idle_ns())
        if real:
            found["reveal_ns"].append(self._revealed(seat))
        seat.conductor.prepare(ROW if real else ROW_OF_NOTHING)
        isolation.signal_all(pids, signal.SIGCONT)
        began = _clock()
        seat.conductor.start()
        done = seat.conductor.wait(left)
        for copy, piece in zip(copies, pieces, strict=True):
            copy.copy_(piece)
        isolation.signal_all(pids, signal.SIGSTOP)
        self._synchronize()
        elapsed = _clock() - began
        if done:
            found[step].append({"elapsed_ns": elapsed, "seed": seed if real else None})
        if done and real:
            found["judged"].append(self._judged_row(seat, pieces, copies))
        isolation.signal_all(pids, signal.SIGCONT)
        return done

    def _revealed(self, seat: Seat) -> int:
        """Write a row's contents, last of all; the time in ns, more where somebody works meanwhile.

        What waits on the device for contents to change could begin before the clock does.
        """
        self._synchronize()
        began = _clock()
        self._own().reveal_all(seat.ring)
        self._device.flush()
        self._synchronize()
        return int(_clock() - began)

    def _judged_row(
        self, seat: Seat, pieces: Sequence[torch.Tensor], copies: Sequence[torch.Tensor]
    ) -> dict[str, Any]:
        """All outputs as they are, and whether the pieces are as they were when the row ended."""
        own = self._own()
        mutated = own.changed(seat.ring, range(seat.calls))
        arguments = [own.ring.arguments(place) for place in range(seat.calls)]
        if seat.row_judge is not None and all(seat.row_judge.right()):
            judged = self._judge.verdict([True] * seat.calls, arguments, seat.row_outputs)
        else:
            judged = self._judge.judge(arguments, seat.row_outputs)
        late = sum(not same_bits(*pair) for pair in zip(pieces, copies, strict=True))
        if late:
            judged = {**judged, "right": False}
        return {**judged, "late": late, "mutated": mutated}

    def _pass_gates(self, seat: Seat, step: str, found: dict[str, Any], left: float) -> bool:
        """Calls behind gates on the device, one after the other: see `device_gates.py`.

        Nothing of a call can be done together with others, before its turn, or after it.
        """
        if self._gates is None:
            raise SharingFailed("there are no gates without device memory")
        gates, real, calls = self._gates, step == "gated", seat.singles
        end_ns = _clock() + int(left * 1e9)
        own, seed = self._own(), secrets.randbits(62)
        own.fill(calls, seed)
        gates.stage(calls)
        copies = self._copies(calls)[:calls]
        for output in (output for made in seat.single_outputs[:calls] for output in made):
            poison(output)
        seat.conductor.wait_ready(left)
        self._synchronize()
        seat.turns += 1
        flags, turn = seat.pointers[2], seat.turns
        seat.conductor.prepare(GATES if real else GATES_OF_NOTHING, turn)
        seat.conductor.start()
        if not seat.conductor.wait_armed(left):
            return False
        gates.queue(seat.ring, seat.single_outputs, copies, flags, turn)
        try:
            elapsed = gates.go(end_ns, seat.conductor.check_alive)
        finally:
            gates.release(calls, flags, turn)
        if elapsed is None:
            raise NoAnswer(gone=False)
        done = seat.conductor.wait(left)
        if done:
            found[step].append({"elapsed_ns": elapsed, "seed": seed if real else None})
        if done and real:
            gates.fetch(seat.ring, copies)
            mutated = own.changed(seat.ring, range(calls))
            arguments = [own.ring.arguments(place) for place in range(calls)]
            if self._gate_judge is not None and all(self._gate_judge.right()):
                judged = self._judge.verdict([True] * calls, arguments, copies)
            else:
                judged = self._judge.judge(arguments, copies)
            found["judged"].append({**judged, "mutated": mutated})
        return done

    def _gate(self, seat: Seat, step: str, found: dict[str, Any], left: float) -> bool:
        """One plain call whose contents are revealed, at an entry of our choice, on the clock."""
        real = step == "called"
        entry = secrets.randbelow(seat.singles)
        # A plain call's outputs are copied to where the measurer asked for them.
        outputs = seat.ring.targets(entry)
        copies = self._copies(1)[0]
        seed = secrets.randbits(62)
        own = self._own()
        own.fill(1, seed)
        for output in outputs:
            poison(output)
        self._device.flush()
        seat.conductor.wait_ready(left)
        seat.conductor.prepare(_PLAIN[step], entry)
        self._synchronize()
        began = _clock()
        seat.ring.input_block(entry).copy_(own.ring.input_block(0))
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
            mutated = own.changed(seat.ring, [entry])
            judged = self._judge.judge([own.ring.arguments(0)], [copies])
            found["judged"].append({**judged, "mutated": mutated})
        return done

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

    def _own(self) -> Contents:
        if self._contents is None:
            raise SharingFailed("no room was made before this request")
        return self._contents

    def _synchronize(self) -> None:
        self._device.synchronize()


_PLAIN = {"called": CALL, "null_called": NOTHING, "copied": COPY}
#: Rows and gated calls, of graphs and of plain calls, and of a trusted process with nothing to do.
SERIES = ("rows", "null_rows", "gated", "null_gated", *_PLAIN)
