"""Is this machine healthy, and was it the same after the measurements as before?

`measure` runs in a process of its own and returns three figures of the device; `judge` compares
before, after and the stored limits of the product. Only `measure` needs torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .codes import reason
from .roofline import Product

#: Largest relative change between before and after. Launch latency is noisier than the others.
MAX_DRIFT = {"copy_bytes_per_s": 0.03, "matmul_flops": 0.06, "launch_ns": 0.6}
MAX_LAUNCH_NS = 100_000
_COPY_BYTES = 1 << 30
_MATMUL_EXTENT = 8192

#: Bits of NVML's clocks event reasons that mean a sick or overheated machine:
#: hardware slowdown, software thermal, hardware thermal, hardware power brake.
BAD_THROTTLE_BITS = 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True)
class Calibration:
    """Outcome of both calibrations; `clean` means that results may count as evidence."""

    before: dict[str, float] | None
    after: dict[str, float] | None
    drift: dict[str, float] | None
    clean: bool
    reasons: list[dict[str, str]]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def judge(
    before: Mapping[str, float] | None,
    after: Mapping[str, float] | None,
    product: Product | None,
    is_cpu: bool,
    telemetry: Sequence[Mapping[str, Any]],
    other_processes: int,
) -> Calibration:
    """Decide whether a session's machine was healthy and steady."""
    reasons = []
    drift: dict[str, float] | None = None
    if is_cpu:
        reasons.append(reason("CPU_FALLBACK"))
    elif product is None:
        reasons.append(reason("NO_STORED_LIMITS"))
    if before is None or after is None:
        reasons.append(reason("CALIBRATION_FAILED"))
    else:
        drift = {name: abs(after[name] / before[name] - 1.0) for name in MAX_DRIFT}
        for name, value in drift.items():
            if value > MAX_DRIFT[name] and not is_cpu:
                detail = f"{name} moved by {value:.1%}; at most {MAX_DRIFT[name]:.0%}."
                reasons.append(reason("CALIBRATION_DRIFT", detail))
        if product is not None:
            reasons += _below_limits(before, after, product)
    if any(int(sample.get("throttle_reasons") or 0) & BAD_THROTTLE_BITS for sample in telemetry):
        reasons.append(reason("THROTTLED"))
    if other_processes:
        reasons.append(reason("GPU_SHARED", f"{other_processes} other processes at the start."))
    return Calibration(
        before=dict(before) if before else None,
        after=dict(after) if after else None,
        drift=drift,
        clean=not reasons,
        reasons=reasons,
    )


def _below_limits(
    before: Mapping[str, float], after: Mapping[str, float], product: Product
) -> list[dict[str, str]]:
    least = {
        "copy_bytes_per_s": product.least_copy_bytes_per_s,
        "matmul_flops": product.least_matmul_flops,
    }
    reasons = []
    for name, limit in least.items():
        worst = min(before[name], after[name])
        if worst < limit:
            detail = f"{name} is {worst:.3g}; {product.match} must reach {limit:.3g}."
            reasons.append(reason("BELOW_STORED_LIMIT", detail))
    launch = max(before["launch_ns"], after["launch_ns"])
    if launch > MAX_LAUNCH_NS:
        detail = f"launch_ns is {launch:.0f}; at most {MAX_LAUNCH_NS}."
        reasons.append(reason("BELOW_STORED_LIMIT", detail))
    return reasons


def measure(device: Any) -> dict[str, float]:
    """Launch latency (wall, ns), device copy (bytes read plus written per s), matrix product.

    `device` is one of `clocks.py`. Medians of repeated calls on random data.
    """
    import torch

    is_cpu = device.device.type == "cpu"
    small = torch.ones(32, device=device.device)
    launch_ns = _median_ns(device, lambda: small.add_(1.0), 200, wall=True)
    empty_ns = _median_ns(device, lambda: None, 50)
    return {
        "launch_ns": float(launch_ns),
        "copy_bytes_per_s": _copy_rate(device, is_cpu),
        "matmul_flops": _matmul_rate(device, is_cpu),
        "empty_event_pair_ns": float(empty_ns),
    }


def _copy_rate(device: Any, is_cpu: bool) -> float:
    import torch

    size = 8 << 20 if is_cpu else min(_COPY_BYTES, int(torch.cuda.mem_get_info()[0]) // 4)
    source = torch.empty(size, dtype=torch.uint8, device=device.device).random_(0, 255)
    target = torch.empty_like(source)
    return 2e9 * size / _median_ns(device, lambda: target.copy_(source), 5 if is_cpu else 30)


def _matmul_rate(device: Any, is_cpu: bool) -> float:
    import torch

    extent = 128 if is_cpu else _MATMUL_EXTENT
    dtype = torch.float32 if is_cpu else torch.bfloat16
    left, right = (torch.randn(extent, extent, device=device.device, dtype=dtype) for _ in "ab")
    median_ns = _median_ns(device, lambda: torch.matmul(left, right), 5 if is_cpu else 30)
    return 2e9 * float(extent) ** 3 / median_ns


def _median_ns(device: Any, function: Any, repeats: int, wall: bool = False) -> int:
    times: list[int] = []
    for index in range(repeats + 3):
        device.synchronize()
        if not wall:
            device.runway()
        device.begin()
        function()
        device.end()
        timing = device.finish()
        if index >= 3:
            times.append(timing.wall_ns if wall else timing.device_ns)
    return max(1, sorted(times)[len(times) // 2])
